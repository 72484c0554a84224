"""Facts of the run that a text log states once: argument tables, settings, sentences of trainers at the start."""

from __future__ import annotations

import re

from trainmon.tails.card_memory import card_bytes
from trainmon.tails.fact_names import FACT_NAMES, TEXT_FACTS
from trainmon.tails.formats.numbers import with_multiplier
from trainmon.tails.rule import up_to

# In text a batch size without "global" may be any of several, and counters are no facts.
_UNCLEAR = frozenset(
    (
        "batch_size",
        "global_step",
        "best_metric",
        "seed",
        "gpu",
        "parameters",
        "warmup",
        "max_norm",
        "max_length",
        "optim",
    )
)
_NAMES: dict[str, str] = {
    **{name: fact for fact, names in FACT_NAMES.items() for name in names if name not in _UNCLEAR},
    "train_batch_size": "batch_size",  # DeepSpeed's, printed in its configuration: the global one
    "total_batch_size": "tokens_per_batch",
    "parameters_said": "parameters",
    "number_of_training_steps": "total_steps",
    "number_of_steps": "total_steps",
    "num_optimization_steps": "total_steps",
    "number_of_optimization_steps": "total_steps",
}
_VALUE = r"([-+.\w]*\d[\w.,+-]*|torch\.\w+|[A-Za-z][\w.-]*)"
_DOTTED = re.compile(rf"\s*(\w[\w -]*?) \.{{3,}} {_VALUE}")
_SETTING = re.compile(
    rf"[\"'>\s]*([A-Za-z][\w .-]*?)[\"']?\s*(?:\([^)]*\)\s*)?(?::|=|: *=)\s*[\"']?{_VALUE}[\"']?,?\s*(?:\(.*\))?\s*$"
)
_INLINE = re.compile(rf"(?<![\w.])['\"]?([a-z]\w*)['\"]?\s?[:=]\s?{_VALUE}(?=[\s,)}}\]]|$)")
# Settings in a sentence: "... global batch size 64, sequence length 8192, total steps 10000 (warmup 200)".
_SENTENCE = re.compile(
    r"\b(?P<name>total (?:training |train |optimization )?steps|global batch size|total batch size(?= ?\()"
    r"|sequence length|warmup|num train steps)\s*(?:\([^)]*\)\s*)?(?:[:=]|of)?\s*(?P<value>\d[\d,]*)\b",
    re.IGNORECASE,
)
_TOLD = {"total_batch_size": "batch_size", "warmup": "warmup_steps", "sequence_length": "seq_length"}
_SIZE = re.compile(r"\bsize: ([\d,]+) total parameters")
# MLX; whisper and others behind "***** Running training *****"; axolotl; and in words.
_STEPS = re.compile(
    r"Starting training\W+iters: (?P<a>\d+)|\b[Nn]um (?:training |train |update )?steps = (?P<b>[\d,]+)"
    r"|[Mm]aximum number of steps set at (?P<c>[\d,]+)|[Tt]raining for (?P<d>[\d,]+) (?:more )?(?:steps|iterations)\b"
)
_TABLE = re.compile(rf"\| ([A-Za-z][\w ()]*?)\s+\| {_VALUE}\s+\|")
_PARAMETERS = re.compile(
    r"(?:number of param(?:eter)?s|model[_ ]params|total param(?:eter)?s|num_parameters)\s*[:=]\s*([\d.,]+[KMBT]?)\b",
    re.I,
)
_GPU = re.compile(
    r"NVIDIA ((?:GeForce |Quadro |Tesla )?(?:[RG]TX )?(?:[A-Z]{1,4}\d{2,5}|(?<=TX )\d{3,5})[\w-]*"
    r"(?: (?:Ti|SUPER|Ada))?(?: \d+GB)?)"
    r"|(AMD Instinct MI\d+\w*)"
)
# Said of the whole run: "1.3B parameters", "training on 64 GPUs".
_SAID_SIZE = re.compile(r"\bmodel\b.{0,60}?\b(\d[\d.,]*\s?[KMBT])\s(?:total )?param(?:eter)?s\b", re.IGNORECASE)
_SAID_WORLD = re.compile(
    r"\btrain\w*\b.{0,40}?\b(?:on|using|across|with) (\d{1,6}) (?:x )?(?:\w+ )?(?:GPU|device|accelerator|chip|NPU)s?\b",
    re.I,
)
# What holds settings one beside the other on a line, with the optimiser's own among them.
_ALL_SETTINGS = re.compile(r"(?:Arguments|Namespace|Args|Config(?:uration)?)\(")
_SWITCH = re.compile(
    r"\s*[\"']?(?P<name>bf16|fp16|fp8|bfloat16|float16)[\"']?\s?(?:\.{3,}|[:=])\s?[\"']?true\b", re.IGNORECASE
)
_LAUNCHER = r"\b(?:torchrun|python[\d.]*|deepspeed|accelerate|srun|mpirun)\b"
_COMMAND = re.compile(rf"{_LAUNCHER}{up_to(_LAUNCHER, 2000)}\s--", re.IGNORECASE)
_FLAG = re.compile(rf"(?<=\s)--([a-z][\w-]{{1,60}})[ =]{_VALUE}(?=\s|$)")
_GPU_MEMORY = re.compile(r"\dMiB / {1,4}(\d+)MiB")
_WORLD = re.compile(r"(?:distributed )?world[_ ]size\s*[:=]\s*(\d+)", re.I)
# MaxText prints each of its settings so. What other programs call by these words may be anything.
_PARAM = re.compile(r"Config param: (?P<name>\w+): (?P<value>\S+)\s*$")
_PARAM_NAMES = {
    "steps": "max_steps",
    "max_target_length": "seq_length",
    "global_batch_size_to_train_on": "global_batch_size",
    "gradient_clipping_threshold": "max_grad_norm",
}
_PROGRESS = re.compile(r"Progress on: \S+/([\d.]+k?)(?:it)? rate:")

TOKENS: tuple[bytes, ...] = (
    b"train_iters",
    b"train-iters",
    b"max_steps",
    b"max-steps",
    b"num_iterations",
    b"max_iters",
    b"num_train_steps",
    b"optimization steps",
    b"num steps",
    b"number of steps",
    b"training steps",
    b"train steps",
    b"training for ",
    b"logging_steps",
    b"num_train_epochs",
    b"num epochs",
    b"num examples",
    b"total training steps",
    b"global_batch_size",
    b"global batch size",
    b"total train batch size",
    b"seq_length",
    b"max_seq_len",
    b"train_seq_len",
    b"total batch size",
    b"train_batch_tokens",
    b"clip_grad",
    b"gradient_clipping",
    b"max_grad_norm",
    b"grad_clip",
    b" lr ..",
    b"learning_rate:",
    b"learning rate (lr)",
    b"lr_warmup_iters",
    b"warmup_steps",
    b"warmup_iters",
    b"warmup iterations",
    b"num_layers",
    b"hidden_size",
    b"num_experts",
    b"world_size",
    b"world size",
    b"save_interval",
    b"params_dtype",
    b"number of param",
    b"model params",
    b"model_params",
    b"progress on:",
    b"number of trainable",
    b"total params",
    b"trainable params",
    b"b parameters",
    b"m parameters",
    b" gpus",
    b"seq_len",
    b"save_steps",
    b"learning_rate=",
    b"bf16=true",
    b"bf16: true",
    b"bf16 ...",
    b"'bf16': true",
    b'"bf16": true',
    b"fp16=true",
    b"fp16: true",
    b"fp16 ...",
    b"total_batch_size",
    b"total_steps",
    b"total steps",
    b"total_num_steps",
    b"max_update",
    b"total parameters",
    b"training..., iters",
    b"nvidia ",
    b"mib / ",
    b"amd instinct",
    b"config param: ",
)
_COUNTS = frozenset(
    {"total_steps", "batch_size", "seq_length", "tokens_per_batch", "warmup_steps", "num_layers", "parameters"}
)
_LONGEST = 4000
_LONGEST_SETTINGS = 65_536
# Beside other settings on one line these are as often a part's own.
_NOT_INLINE = frozenset(
    (
        "lr",
        "learning_rate",
        "precision",
        "optimizer",
        "hidden_size",
        "dtype",
        "torch_dtype",
        "mixed_precision",
        "max_lr",
    )
)


def facts_of(text: str) -> list[tuple[str, float | str]]:
    """The facts that `text`, one line, states.

    >>> facts_of("  train_iters ..................................... 500000")
    [('total_steps', 500000.0)]
    >>> facts_of("number of parameters: 124.5M"), facts_of("  Total optimization steps = 8,264")
    ([('parameters', 124500000.0)], [('total_steps', 8264.0)])
    """
    if len(text) > _LONGEST:
        return _inline(text) if len(text) <= _LONGEST_SETTINGS else []
    match = _PROGRESS.search(text)
    if match is not None:
        return _fact("max_steps", match[1])
    match = _PARAM.match(text)
    if match is not None:
        return _fact(_PARAM_NAMES.get(match["name"], match["name"]), match["value"])
    match = _SWITCH.match(text)
    if match is not None:
        return [("precision", match["name"].lower())]
    if "--" in text and _COMMAND.search(text):
        return [fact for flag in _FLAG.finditer(text) for fact in _fact(flag[1], flag[2])]
    match = _PARAMETERS.search(text)
    if match is not None:
        return _fact("number_of_parameters", match[1])
    match = _GPU.search(text)
    if match is not None:
        return [("gpu", match[1] or match[2])]
    match = _GPU_MEMORY.search(text)
    if match is not None:
        return [("gpu_memory_bytes", float(match[1]) * 2**20)]
    match = _DOTTED.match(text) or _TABLE.match(text) or _SETTING.match(text)
    if match is not None:
        found = _fact(match[1], match[2])
        if found:
            return found
    match = _SIZE.search(text)
    if match is not None:
        return _fact("number_of_parameters", match[1])
    match = _STEPS.search(text)
    if match is not None:
        return _fact("max_steps", match[match.lastgroup or 0])
    found = _inline(text) or _told(text) or _said(text)
    match = _WORLD.search(text)
    if match is not None and not found:
        found = _fact("world_size", match[1])
    return found


def _inline(text: str) -> list[tuple[str, float | str]]:
    """The facts among ``name=value`` and ``'name': value`` anywhere in `text`."""
    found: list[tuple[str, float | str]] = []
    allows_all = _ALL_SETTINGS.search(text) is not None
    for match in _INLINE.finditer(text):
        if match[1] in _NAMES and (allows_all or match[1] not in _NOT_INLINE):
            found += _fact(match[1], match[2])
    return found


def _said(text: str) -> list[tuple[str, float | str]]:
    """The size of the model and of the world that a sentence tells."""
    found: list[tuple[str, float | str]] = []
    size, world = _SAID_SIZE.search(text), _SAID_WORLD.search(text)
    if size is not None:
        found += _fact("parameters_said", size[1].replace(" ", ""))
    if world is not None:
        found += _fact("world_size", world[1])
    return found


def _told(text: str) -> list[tuple[str, float | str]]:
    """The facts of a sentence that tells the number of steps or the batch."""
    found: list[tuple[str, float | str]] = []
    told = [(re.sub(r"\s+", "_", match["name"].lower()), match["value"]) for match in _SENTENCE.finditer(text)]
    if any(name not in ("warmup", "sequence_length") for name, _ in told):
        for name, value in told:
            key = _TOLD.get(name)
            found += [(key, float(value.replace(",", "")))] if key is not None else _fact(name, value)
    return found


def _fact(name: str, raw: str) -> list[tuple[str, float | str]]:
    spelled = re.sub(r"[ -]+", "_", re.sub(r"\(.*?\)", "", name).strip().lower())
    key = _NAMES.get(spelled)
    if key is None:
        return []
    if key in TEXT_FACTS:
        word = raw.removeprefix("torch.").strip("\"',")
        return [(key, word)] if word[:1].isalpha() and word not in ("None", "null") else []
    value = with_multiplier(raw.rstrip(",").replace("_", ""))
    if not value > 0 or (key in _COUNTS and value < 1):
        return []
    return [(key, card_bytes(spelled, value) if key == "gpu_memory_bytes" else value)]
