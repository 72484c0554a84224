"""Kinds of text that generated logs of many trainers brought up."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import fact, kinds, read, rows, values
from trainmon.tails.facts import facts_of
from trainmon.tails.formats.registry import detect
from trainmon.tails.formats.stdout import Stdout

LOSSES = [3.25, 3.125, 3.0, 2.875]


@pytest.mark.parametrize("first", [1, 8, 98])
@pytest.mark.parametrize(
    "form",
    [
        "Epoch {epoch:03d}/120 - train loss: {loss} - val loss: 3.5 - time: 12.3s",
        "Epoch {epoch:02d}/120 | train loss: {loss} | val acc: 1.12%",
        "Epoch [{epoch}/120] train loss {loss}",
    ],
)
def test_an_epoch_of_several_digits_is_not_taken_apart(form: str, first: int) -> None:
    text = "".join(form.format(epoch=first + at, loss=loss) + "\n" for at, loss in enumerate(LOSSES))
    assert values(read(text), "train loss") == [(float(first + at), loss) for at, loss in enumerate(LOSSES)]
    assert fact(read(text), "total_steps") == 120.0


@pytest.mark.parametrize(
    "form", ["Training ({step}/120) [==  ] loss: {loss} eta: 00:01:02", "({step}/120) loss: {loss}"]
)
def test_a_place_in_parentheses(form: str) -> None:
    text = "".join(form.format(step=at, loss=loss) + "\n" for at, loss in enumerate(LOSSES, 9))
    assert values(read(text), "loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 9)]


def test_entries_of_a_dictionary_one_a_line_are_not_cut_lines() -> None:
    text = "".join(
        f"{{'grad_norm': 1.5,\n 'learning_rate': {rate},\n 'loss': {loss},\n 'step': {at},\n"
        " 'tokens_per_second': 12011.2}\n"
        for at, (rate, loss) in enumerate(
            zip(["1.5e-05", "0.000299995", "0.000299982", "0.000299958"] * 9, LOSSES * 9, strict=True)
        )
    )
    assert [step for step, _ in values(read(text), "loss")] == [float(at) for at in range(36)]


@pytest.mark.parametrize(
    ("above", "below", "kind"),
    [
        (
            "thread 'main' panicked at src/trainer.rs:112:33:",
            "called `unwrap()` on `Err`: CUDA_ERROR_OUT_OF_MEMORY",
            "cuda_oom",
        ),
        ("[CUDA ERROR] at file train.cu:1012:", "an illegal memory access was encountered", "error"),
    ],
)
def test_an_error_that_ends_in_a_colon_is_told_with_the_line_below(above: str, below: str, kind: str) -> None:
    text = "".join(f"step {at} loss {loss}\n" for at, loss in enumerate(LOSSES)) + f"{above}\n{below}\n"
    for cuts in ((), (5,)):
        parsed = read(text, cuts=cuts)
        assert [note.text for note in parsed.notes] == [f"{above} {below}"]
        assert kinds(parsed) == [kind]
    assert [note.text for note in read(text.removesuffix(f"{below}\n")).notes] == [above]
    goes_on = read(f"[rank1]: {above}\n[rank0]: step 4 loss 2.5\n")
    assert [note.text for note in goes_on.notes] == [above]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Config param: steps: 150", [("total_steps", 150.0)]),
        ("Config param: gradient_clipping_threshold: 1.0", [("clip_threshold", 1.0)]),
        ("Config param: max_target_length: 2048", [("seq_length", 2048.0)]),
        ("Config param: run_name: first", []),
    ],
)
def test_settings_as_maxtext_prints_them(text: str, told: list[tuple[str, float]]) -> None:
    assert facts_of(text) == told
    assert [(one.key, one.value) for one in read(f"{text}\n").facts] == told


NOISE = 'INFO:     10.0.0.{at}:40000 - "GET /metrics HTTP/1.1" 200 OK'
OF_SEVERAL_LINES = {
    "composer": "[batch={step}/4800]:\n\t Train time/batch: {step}\n\t Train loss/train/total: {loss}\n",
    "olmo-core": "[step={step}/1000,epoch=1]\n    optim/total grad norm=1.5\n    train/CE loss={loss}\n",
    "pprint": "{{'grad_norm': 1.5,\n 'loss': {loss},\n 'step': {step}}}\n",
    "box": "-----------------\n| grad_norm | 1.5 |\n| loss | {loss} |\n| step | {step} |\n-----------------\n",
    "table": "{step:<8d} {loss:<9.4f} 1.5\n",
    "no word for the step": "it {step:05d} train_loss {loss:.4f} gnorm 3.558 lr 1.50e-05\n",
}


@pytest.mark.parametrize("every", [2, 3, 4])
@pytest.mark.parametrize("form", OF_SEVERAL_LINES.values(), ids=OF_SEVERAL_LINES)
def test_another_programs_lines_among_those_of_a_record(form: str, every: int) -> None:
    head = "step     loss      grad_norm\n" if form.startswith("{step:<") else ""
    text = head + "".join(form.format(step=at, loss=loss) for at, loss in enumerate(LOSSES * 5, 1))
    alone = read(text)
    assert sum(len(block) for block in alone.blocks) == 20
    lines = [
        line if at % every else f"{line}\n{NOISE.format(at=at % 7)}" for at, line in enumerate(text.splitlines(), 1)
    ]
    mixed = read("\n".join(lines) + "\n")
    assert [row[4] for row in rows(mixed)] == [row[4] for row in rows(alone)]


def test_a_result_below_a_heading_is_of_held_out_data() -> None:
    train = "".join(f"Epoch: 0, Step: {at}, Rank: 0, loss = {loss}\n" for at, loss in enumerate(LOSSES))
    heading = "***** Evaluating perplexity, Epoch {epoch}/2 *****\nppl: 12.5, loss: 2.5\n"
    parsed = read(heading.format(epoch=0) + train + heading.format(epoch=1))
    assert [loss for _, loss in values(parsed, "loss")] == LOSSES
    assert [loss for _, loss in values(parsed, "eval/loss")] == [2.5, 2.5]
    assert [one for _, one in values(parsed, "eval/ppl")] == [12.5, 12.5]


@pytest.mark.parametrize(
    "prefix",
    [
        "worker-1: 2025-03-14 09:26:{at:02d} INFO ",
        "nid001234: 09:26:{at:02d} ",
        "INFO\t2025-03-14 09:26:{at:02d} +0000\tworkerpool0-0\t\t",
        "worker-1: 03/14/2025 09:26:{at:02d} ",
        "17419444{at:02d}.589 0: [2025-03-14 09:26:53.123] ",
        "17419444{at:02d}.589 03/14/2025 09:26:53 - INFO - ",
    ],
)
def test_a_time_behind_a_host_and_a_host_behind_a_time(prefix: str) -> None:
    form = prefix + "[Trainer] Step {at} | Loss: {loss}\n"
    parsed = read("".join(form.format(at=at, loss=loss) for at, loss in enumerate(LOSSES, 1)))
    assert values(parsed, "Loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 1)]
    assert len({row[3] for row in rows(parsed)}) == 4


def test_the_bar_of_an_evaluation_is_one_result_at_the_step_it_was_begun_at() -> None:
    text = ""
    for at, loss in enumerate(LOSSES):
        text += f"step {at * 25}: train/loss={loss}\n"
        frames = (
            f"\rEvaluating:  {n * 25}%|#  | {n}/4 [00:0{n}<00:05,  1.9it/s, loss={loss + n / 8:.3f}]" for n in range(5)
        )
        text += "".join(frames) + "\n"
    for cuts in ((), (3,), (2, 4, 6)):
        parsed = read(text, cuts=cuts)
        assert values(parsed, "eval/loss") == [(at * 25.0, loss + 0.5) for at, loss in enumerate(LOSSES)]
        assert values(parsed, "train/loss") == [(at * 25.0, loss) for at, loss in enumerate(LOSSES)]


@pytest.mark.parametrize("prefix", ["", "0: ", "[rank0]: ", "trainer-1  | "])
def test_epochs_behind_a_label_are_counted_from_the_first(prefix: str) -> None:
    form = prefix + "Epoch {at:02d}/50 - train loss: {loss} - val loss: 3.5\n"
    parsed = read("".join(form.format(at=at, loss=loss) for at, loss in enumerate(LOSSES, 1)))
    assert values(parsed, "train loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 1)]


@pytest.mark.parametrize("prefix", ["", "[pod/worker-0/pytorch] ", "worker-1: ", "trainer-1  | "])
def test_the_card_in_brackets_behind_another_label(prefix: str) -> None:
    form = prefix + "[GPU{card}] Epoch 0 | Step {at} | Loss {loss:.4f}\n"
    losses = [(at, card, loss + card / 8) for at, loss in enumerate(LOSSES) for card in (2, 0, 1)]
    parsed = read("".join(form.format(at=at, card=card, loss=loss) for at, card, loss in losses))
    for card in range(3):
        found = [one for key in (f"Loss{{rank={card}}}", "Loss") for one in values(parsed, key)]
        assert set(found) >= {(float(at), loss) for at, one, loss in losses if one == card}, card
    assert len(values(parsed, "Loss")) == len(LOSSES)


def frames(label: str, loss: float, *, first: int = 1) -> str:
    drawn = (f"\r{label}{n * 25}%|##| {n}/4 [00:0{n}<00:05, 1.0it/s, loss={loss - n / 8:.3f}]" for n in range(first, 5))
    return "".join(drawn) + "\n"


@pytest.mark.parametrize("labels", [("",), ("train: ",), ("Train epoch [1/1]: ",), ("Epoch [1/2]: ", "Epoch [2/2]: ")])
def test_a_bar_that_was_drawn_to_its_end_and_is_begun_anew_goes_on(labels: tuple[str, ...]) -> None:
    text = "".join(frames(label, 4.0 - at / 2) for at, label in enumerate(labels * 3))
    for cuts in ((), (1,), (1, 2)):
        steps = [step for step, _ in values(read(text, cuts=cuts), "loss")]
        assert steps == [float(step) for step in range(1, 12 * len(labels) + 1)]


def test_a_bar_begun_anew_by_another_start_counts_from_its_own_first_step() -> None:
    text = frames("train: ", 4.0) + "Running: torchrun train.py\n" + frames("train: ", 4.0)
    assert [step for step, _ in values(read(text), "loss")] == [1.0, 2.0, 3.0, 4.0] * 2
    cut_short = frames("train: ", 4.0).split("\r4/4")[0].replace("100%|##| 4/4", "75%|##| 3/4")
    assert [step for step, _ in values(read(cut_short + frames("train: ", 4.0)), "loss")][3:] == [1.0, 2.0, 3.0, 4.0]


def test_a_bar_among_lines_that_count_epochs_costs_none_of_them() -> None:
    text = "".join(
        f"100%|##| 200/200 [01:12<00:00,  2.77it/s, train_loss={5 - at / 16}]\nepoch: {at}, train loss: {5 - at / 16}\n"
        for at in range(1, 31)
    )
    assert [step for step, _ in values(read(text), "train loss")] == [float(at) for at in range(1, 31)]


REMARKS = [
    "(gc took 0.1 s)",
    "(12.5 GiB free)",
    "(GB): 12.5",
    "(min, max) time across ranks (ms):",
    "(0): Linear(in_features=768, out_features=3)",
]


@pytest.mark.parametrize("every", [1, 2, 7])
@pytest.mark.parametrize("remark", REMARKS)
@pytest.mark.parametrize("prefixes", [[""], ["0: "], ["[rank0]: ", "0: "], ["2025-03-14 09:26:53,123 - INFO - ", ""]])
@pytest.mark.parametrize("form", ["step={at} loss={loss:.4f}", "[{at}/100] loss: {loss:.3f} |"])
def test_a_remark_in_parentheses_is_not_the_rest_of_the_record_above(
    form: str, prefixes: list[str], remark: str, every: int
) -> None:
    lines: list[str] = []
    for at in range(1, 25):
        lines.append(prefixes[at % len(prefixes)] + form.format(at=at, loss=4 - at / 8))
        lines += [prefixes[0].replace("[rank0]: ", "") + remark] if at % every == 0 else []
    found = [row for row in rows(read("\n".join(lines) + "\n")) if "loss" in row[4]]
    assert [(row[0], row[4]["loss"], len(row[4])) for row in found] == [
        (float(at), pytest.approx(4 - at / 8, abs=1e-3), 1) for at in range(1, 25)
    ]


def test_the_step_that_a_run_goes_on_from_is_not_that_of_the_next_record() -> None:
    banner = "***** Running training *****\n  Continuing training from global step 150\n"
    parsed = read(banner + "".join(f"{{'loss': {loss}, 'epoch': {at / 4}}}\n" for at, loss in enumerate(LOSSES, 5)))
    assert [step for step, _ in values(parsed, "loss")] == ["nan"] * 4


def test_a_stamped_bar_with_commas_is_no_table() -> None:
    text = "".join(
        f"2025-03-14T09:26:5{at}.590201123Z   {at}%|#  | {at}/120 [00:0{at}<01:00,  1.00it/s, loss={loss}]\n"
        for at, loss in enumerate(LOSSES, 1)
    )
    assert isinstance(detect(text.encode(), "train.log"), Stdout)
    assert values(read(text), "loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 1)]


@pytest.mark.parametrize("outer", ["[pod/launcher/main] ", "(Launcher pid=2211, ip=10.0.0.1) ", "trainer-1  | "])
def test_a_host_behind_a_containers_label(outer: str) -> None:
    form = (
        "worker-1: [2025-03-14 09:26:{at:02d},123] [INFO] [logging.py:96:log_dist] [Rank 0] step={at}, skipped=0\n"
        "worker-1: step: {at}, train loss: {loss:.4f}\n"
    )
    text = "".join(form.format(at=at, loss=loss) for at, loss in enumerate(LOSSES, 1))
    behind = "".join(outer + line for line in text.splitlines(keepends=True))
    assert values(read(behind), "train loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 1)]


@pytest.mark.parametrize("outer", ["", "0: ", "[rank0]: ", "2025-03-14T09:26:54.1234567Z ", "worker-1: "])
def test_a_record_that_richs_console_folds_behind_another_label(outer: str) -> None:
    lines: list[str] = []
    for at, loss in enumerate(LOSSES, 1):
        stamp = f"[09:26:{at:02d}]" if at % 2 else " " * 10  # rich leaves a stamp out that is the same as above
        lines.append(f"{stamp} INFO     Step {at}/1000 | Loss: {loss} | LR: 3.00e-05 |        trainer.py:211")
        lines.append(f"{'':20}Grad: 1.5 | Tok/s: 12034")
    parsed = read("".join(f"{outer}{line}\n" for line in lines))
    assert values(parsed, "Loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 1)]
    assert values(parsed, "Grad") == [(float(at), 1.5) for at in range(1, 5)]


@pytest.mark.parametrize("outer", ["", "0: ", "worker-1: ", "trainer-1  | "])
def test_a_ruled_box_behind_a_label(outer: str) -> None:
    box = "---------------\n| loss | {loss} |\n| grad_norm | 1.5 |\n| step | {at} |\n---------------\n"
    text = "".join(box.format(at=at, loss=loss) for at, loss in enumerate(LOSSES, 1))
    parsed = read("".join(outer + line for line in text.splitlines(keepends=True)))
    assert values(parsed, "loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 1)]
    assert values(parsed, "grad_norm") == [(float(at), 1.5) for at in range(1, 5)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_is_said_before_a_traceback_is_heard_whatever_ends_the_lines(end: str) -> None:
    lines = [
        "wandb: WARNING upload failed, retrying",
        "Traceback (most recent call last):",
        '  File "sync.py", line 3, in <module>',
        "    send()",
        "ConnectionError: Read timed out.",
    ]
    parsed = read("".join(f"step {at} loss {loss}{end}" for at, loss in enumerate(LOSSES)) + end.join(lines) + end)
    assert kinds(parsed, teardown=False) == []


def test_an_amount_of_a_whole_is_no_average() -> None:
    text = "".join(f"samples {at * 512}/100000 loss {loss} lr 1e-4\n" for at, loss in enumerate(LOSSES, 1))
    assert [loss for _, loss in values(read(text), "loss")] == LOSSES
    assert [count for _, count in values(read(text), "samples")] == [512.0, 1024.0, 1536.0, 2048.0]


def test_the_word_of_hfs_trainer_that_it_has_trained() -> None:
    text = "".join(f"{{'loss': {loss}, 'epoch': {at / 4}}}\n" for at, loss in enumerate(LOSSES, 1))
    assert kinds(read(text + "***** train metrics *****\n  epoch                    =        1.0\n")) == ["finished_ok"]
    assert kinds(read(text)) == []
