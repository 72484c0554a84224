"""Lines of pairs at one step: which number is the step, which are metrics, and whether it is a record at all."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import ClassVar

from trainmon.tails.formats.bare_split import named_beside, named_losses
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import with_multiplier
from trainmon.tails.formats.pairs import MOST_PAIRS, Pair
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading, Shape, Template, read_once
from trainmon.tails.formats.wide import LONG

STEP_KEY = re.compile(
    r"(?:at |after |in |@ ?|(?:eval(?:uation)?|validation|val|test) (?:@|at|after|for) )?"
    r"(?:(?:global|eval(?:uation)?|val(?:id(?:at(?:e|ion|ing))?)?|test|train(?:ing)?|completed"
    r"|optimi[sz]er|opt|current|cur|learning)[ _-]?)?"
    r"(?:steps?|iter(?:ation)?s?|updates?|it)"
    r"(?:[ _]?(?:num|number|idx|count|id|i|no\.?)|\((?:train(?:ing)?|val|test)\))?"
    r"|num_updates|n_iter",
    re.IGNORECASE,
)
# What a trainer measures and a configuration seldom holds. One of these makes a line with a step a record.
METRIC = re.compile(
    r"loss|(?<![a-z])ppl|perplexity|bpb|bits.per|(?<![a-z])nll|reward|accura|\bacc\d?\b|grad.?norm|gnorm|\bnorm\b|\bgrad\b|entropy|"
    r"\bkl\b|\blr\b|learning.rate|\btok|throughput|t?flops?\b|\bmfu\b|\bce\b|xent|\bwps\b|\btps\b|score|return"
    r"|\br?mse\b|\bmae\b",
    re.IGNORECASE,
)
MEASURE = re.compile(
    r"loss|(?<![a-z])ppl|perplexity|bpb|(?<![a-z])nll|reward|accuracy|\bacc\b|score|\br?mse\b|\bmae\b", re.IGNORECASE
)
# What a configuration holds and no result does.
SETTING = re.compile(
    r"weight(?!ed)|coef|loss_scale|lambda|threshold|alpha|beta|type|hidden|num_layers|size$|every|interval|factor|\beps$",
    re.IGNORECASE,
)
EVAL_WORD = re.compile(
    r"(?<![A-Za-z])(?:eval(?:uation|uating|uate)?|val(?:id(?:at(?:e|ion|ing))?)?|test(?:ing)?|dev)(?![A-Za-z])", re.I
)
# Epoch and place in it: ``Train: [0/10][290/1251]``, ``Epoch:[1/1](300/39695)``, ``Epoch [1/10], Step [100/500]``.
_NESTED = re.compile(
    r"(?:\[\s*(?P<e1>\d+)\s*(?:/\s*(?P<E1>\d+)\s*)?\](?=\s*[\[(])|\[\s*(?P<e3>\d+)\s*/\s*(?P<E3>\d+)\s*\]"
    r"|(?:epoch|\btrain:)\s*[:=]?\s*[\[(]?\s*(?P<e2>\d+)(?!\d)(?:\s*/\s*(?P<E2>\d+)(?!\d))?[\])]?)"
    r"[\s,:;|-]*(?:(?:step|batch|iter(?:ation)?|it)\s*[:=]?)?\s*[\[(]?\s*(?P<n>\d+)\s*/\s*(?P<N>\d+)",
    re.IGNORECASE,
)
# The step alone in brackets: ``[100] loss=2.5``, ``train[100] loss=2.5``; before a logger's name it is a process.
_BRACKETED = re.compile(
    r"\s{0,16}(?:(?:train|eval|val|valid|validation|test|step|iter)?\s{0,8}\[\s{0,16}(\d{1,12})\s{0,8}\](?=[\s:,])(?!\s\w+\.\w+\.\w)|[#@]\s?(\d+)\b(?=[\s:,|])"
    r"|\((\d{1,12})\)(?=\s[A-Za-z]\w{0,30}[:=])"  # (20) Loss=2.5
    r"|\[\s{0,8}(\d{1,12})\s{0,8}\|\s{0,8}[\d.:]{1,20}\s{0,8}\](?=\s))",  # and the time so far: [12 | 14.52]
    re.IGNORECASE,
)
# Epoch and batch in one bracket: ``[3,  2000] loss: 2.5``; and a place that no word names: ``67/446 (epoch 0), loss``.
_PAIRED = re.compile(r"\s{0,8}[\[(]\s{0,8}(\d{1,6}),\s{1,8}(\d{1,9})[\])](?=[\s:])")
# The step before a bar, and epoch and batch with nothing about them: ``490 | loss 5.75``, ``12 154 Loss=2.5``.
_BARRED = re.compile(r"\s{0,8}(\d{1,9})\s{1,4}\|\s{1,4}(?=[A-Za-z])")
_TWO_NUMBERS = re.compile(r"\s{0,8}(\d{1,6})\s{1,4}(\d{1,9})\s{1,4}(?=[A-Za-z]\w{0,30}\s?[=:])")
_PHASE = r"(?:[Pp]re)?[Tt]rain(?:ing)?"  # Training  [  10/500]  eta: 1:00:00  loss: 2.5
_COUNT = r"\d{1,3}(?:,\d{3}){1,3}|\d{1,9}(?:\.\d{1,3})?[kKM]?"
_LEADING = re.compile(
    rf"\s{{0,8}}(?:{_PHASE}:?\s{{1,4}}(?=[\[(]))?[\[(]?\s{{0,8}}({_COUNT})\s?/\s?({_COUNT})\s?[\])]?"
    r"(?=\s*[(*:,|-]|\s+[A-Za-z\d]|\s+\[[=#>. █░-]{0,200}\]\s)"
)
# The step between the loss and its value: ``Train loss 10 2.5 Grad Norm 1.2``.
_LOSS_STEP = re.compile(
    r"\s{0,8}((?:train|training|validation|valid|val|test|eval)[ _]loss)\s(\d{1,9})\s{1,4}(\d{1,9}\.\d{1,12})(?=\s|$)",
    re.I,
)
# The set and the epoch: ``train (3/10) loss: 2.5 | acc: 0.5``.
_OF_EPOCH = re.compile(
    r"\s{0,8}(?:train(?:ing)?|val(?:id(?:ation)?)?|test|dev) \((\d{1,6})/(\d{1,6})\):?\s+(?=[A-Za-z][\w/]*\s?[:=])",
    re.IGNORECASE,
)
# The process among the pairs: ``rank 2``, ``Device=xla:0/3``.
_RANK_KEY = re.compile(
    r"(?:(?:global|worker|gpu|process)[ _])?rank|worker(?:[ _]id)?|gpu[ _]id|process[ _](?:id|index)", re.IGNORECASE
)
_CORE = re.compile(r"\bxla:\d{1,4}/(\d{1,4})\b")
_OF_CAPACITY = re.compile(r"\([KMGT]i?B\)$|mem(?:ory)?\b", re.IGNORECASE)  # Peak Mem.: 64.1/79.1 GiB
# What may stand for the step: ``tokens=2.5B loss=2.5``.
_AMOUNT = re.compile(
    r"(?:(?:consumed|total|train|num)[ _])?(?:tokens|samples|words|examples)(?:[ _](?:seen|consumed|processed))?", re.I
)
_EPOCH_NAME = re.compile(
    r"(?:(?:end of|after|train|training|eval|val|valid|validation|test)[ _]?)?epoch", re.IGNORECASE
)
_ROUND = re.compile(r"(?:episode|round|generation|game|rollout|cycle)", re.IGNORECASE)  # what counts where no step does
_BATCH = re.compile(r"(?:mini|micro)?[ _-]?batch(?:[ _](?:idx|num|number|id))?", re.IGNORECASE)
_OF_STEPS = re.compile(r" (?:steps|iterations|iters|updates)\b", re.IGNORECASE)  # Progress: 10/600 steps
_INTEGER = re.compile(r"\d+")
_RESULTS = re.compile(r"Saving dict for global step")  # what tf.estimator measured on held-out data
_GLOBAL_STEP = re.compile(
    r"global[_ ]step|num_updates|(?:train(?:er|ing)?|progress)/(?:global[_ ])?(?:step|iteration|iter)", re.IGNORECASE
)
_REFUSED = re.compile(
    r"\A\s*(?:\|(?! ?(?:end of )?epoch )|\+[-=]|wandb:|\$ |\+ |File \"|import |from |def |#(?!\d)"
    r"|>>> (?!\[|eval|val|test|train|step|iter|epoch)|Traceback|export |rank \d+ "
    r"sample|[\w./-]+\.sh)"
    r"|\A\s*(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Warning)(?:\(\w*\))?: "
    r"|\(final\)|for final step|^\s*(?:sav|load|build|warn|resum|start|download)\w*\b.*\b(?:checkpoint|model|dataset)"
    r"|f['\"]|\.format\(|\)\s*:\s*$",
    re.IGNORECASE,
)
_CODE = frozenset("(){}=")
_RANK_WORD = re.compile(r"^rank[-_ ]?\d+\s+")
_REACHED = re.compile(r"['\"](?: reached)?")
_LETTER = re.compile(r"[^\W\d_]|[_(]")
_MOST_RESULTS = 8
_WIDE = 400  # values of a line of which no expression is made: that costs a millisecond a value
_MAX_WORDS_OUTSIDE = 3
_STEP_WITHIN = 4  # the step is among the first values of a line, if it is not called by its bare name
_STEP_NAME = re.compile(r"(?:global[_ ]?|train(?:er)?[_/])?(?:step|iteration|iter)", re.IGNORECASE)
_WHOLE_BEHIND_SIGN = re.compile(r".?[:=] ?(?=(?:\d{1,12}(?:\.0{1,6})?|\d(?:\.\d{1,6})?e\+\d\d)(?![\w.]))")


def fields_of(pairs: list[Pair], others: list[tuple[int, int]]) -> list[tuple[str, tuple[int, int]]]:
    """Keys and places of the metrics among `pairs`; the places of the rest are added to `others`."""
    fields: list[tuple[str, tuple[int, int]]] = []
    seen: set[str] = set()
    for pair in pairs:
        key = _REACHED.sub("", _RANK_WORD.sub("", pair.key))
        if pair.prose or key in seen or not _LETTER.match(key) or key.endswith((".py", ".cc")):  # train.py:88
            others.append((pair.start, pair.end))
        else:
            seen.add(key)
            fields.append((key, (pair.start, pair.end)))
        if pair.slash is not None:
            average = f"{pair.name} avg"
            is_average = (
                not _OF_CAPACITY.search(pair.key)
                and not _AMOUNT.fullmatch(pair.name)
                and bool(pair.name)
                and not pair.prose
                and average not in seen
                and not pair.name.endswith(" avg")
            )
            if not is_average or pair.name.lower() == "epoch" or STEP_KEY.fullmatch(pair.name):
                others.append(pair.slash)
            else:
                seen.add(average)
                fields.append((average, pair.slash))
    return fields


def shape_of(line: Line, *, needs_step: bool = True) -> Shape | None:
    """The shape of a line of pairs; None when it is no record.

    A record names a step and at least one metric. `needs_step` False takes lines without a step too.
    """
    text = line.text
    is_code = text.rstrip().endswith(";") and not _CODE.isdisjoint(text)
    if is_code or _REFUSED.search(text) or text.count("]") > text.count("["):  # the latter: the torn end of a bar
        return None
    scanned = line.scan()
    pairs = scanned.pairs
    if not pairs or len(pairs) >= MOST_PAIRS:
        return None
    others = list(scanned.others)
    named = next((pair for pair in pairs if not pair.prose and _GLOBAL_STEP.fullmatch(pair.key)), None)
    nested = _NESTED.search(text, 0, pairs[min(len(pairs), 3) - 1].end + 16) if named is None else None
    if nested is not None and not _counts_on(text, pairs, nested.end()):
        shape: Shape | None = _nested_shape(nested, pairs, others)
    else:
        shape = _plain_shape(text, pairs, others, named) or _bracketed_shape(text, pairs, others)
        shape = shape or _leading_shape(text, pairs, others)
    if shape is None:
        if needs_step:
            return None
        shape = Shape(fields_of(pairs, others), others)
    _take_rank(text, shape)
    if not any(METRIC.search(key) for key, _ in shape.fields):
        shape.fields = named_losses(text, shape.fields)
        if not any(METRIC.search(key) for key, _ in shape.fields):
            return None
    shape.fields = named_beside(text, shape.fields)
    _mark_evaluation(text, shape)
    return shape


def _counts_on(text: str, pairs: list[Pair], end: int) -> bool:
    """Whether a step of its own is named right behind the place in the epoch, which then needs no reckoning:
    ``[Epoch 64 736512/1281167][Iteration 45457]``."""
    behind = [pair for pair in pairs[:_STEP_WITHIN] if pair.start >= end and not pair.prose]
    return any(
        STEP_KEY.fullmatch(pair.key) and pair.slash is None and _INTEGER.fullmatch(text, pair.start, pair.end)
        for pair in behind[:1]
    )


def _take_rank(text: str, shape: Shape) -> None:
    """A rank among the pairs is no metric: it says whose the others are."""
    core = _CORE.search(text)
    for field in shape.fields:
        key, (start, end) = field
        if core is not None and core.start() <= start < core.end():
            shape.rank = core.span(1)
            shape.others += [(start, end)] if (start, end) != shape.rank else []
        elif _RANK_KEY.fullmatch(key) and _INTEGER.fullmatch(text, start, end):
            shape.rank = (start, end)
        else:
            continue
        shape.fields = [one for one in shape.fields if one is not field and one[1] != shape.rank]
        shape.others = [span for span in shape.others if span != shape.rank]
        return


def _plain_shape(text: str, pairs: list[Pair], others: list[tuple[int, int]], named: Pair | None) -> Shape | None:
    first = [pair for pair in pairs[:_STEP_WITHIN] if not pair.prose]
    epoch = next((pair for pair in first if is_epoch(pair, text)), None)
    step = named or next((pair for pair in first if STEP_KEY.fullmatch(pair.key)), None)
    if step is None and epoch is not None:
        step = next((pair for pair in first if _BATCH.fullmatch(pair.key) and pair.start > epoch.start), None)
    if step is None and epoch is None and pairs and pairs[0].slash is not None and _BATCH.fullmatch(pairs[0].key):
        step = pairs[0]  # "Batch 3/100: loss 2.5"
    if step is None and epoch is None and pairs and _ROUND.fullmatch(pairs[0].key) and not pairs[0].prose:
        step = pairs[0] if _INTEGER.fullmatch(text, pairs[0].start, pairs[0].end) else None
    if step is None and epoch is None:
        step = next((pair for pair in first if pair.slash and _is_progress(pair, text)), None)
    step = step or _late_step(text, pairs)
    if step is None:
        return None
    rest: list[Pair] = []
    total = step.slash
    for pair in pairs:
        if total is None and pair.key == f"{step.name} avg" and pair.slash is not None:
            total = pair.slash  # step 5 (5/60)
        if pair.key in (step.key, f"{step.name} (%)", f"{step.name} avg"):  # the step itself, or how much is done
            if pair is not step:
                others.append((pair.start, pair.end))
        else:
            rest.append(pair)
    shape = Shape(fields_of(rest, others), others, (step.start, step.end), step.key.removeprefix("@").strip(), total)
    if epoch is not None and named is None and total is None and epoch.slash is None:
        shape.epoch = (epoch.start, epoch.end)
    return shape


def _late_step(text: str, pairs: list[Pair]) -> Pair | None:
    """The step among values in the order of their names, ``acc=0.5 grad_norm=1.5 loss=2.5 lr=0.1 step=10``: the one
    pair that is called so and nothing else, a whole number right behind its sign."""
    if len(pairs) <= _STEP_WITHIN or not any(MEASURE.search(pair.key) for pair in pairs):
        return None
    found = [pair for pair in pairs[_STEP_WITHIN:] if _STEP_NAME.fullmatch(pair.key) and not pair.prose]
    if len(found) != 1 or found[0].slash is not None:
        return None
    return found[0] if _WHOLE_BEHIND_SIGN.match(text, max(0, found[0].start - 2)) is not None else None


def _is_progress(pair: Pair, text: str) -> bool:
    """Whether `pair` of `text` tells how many of all steps are done: ``Progress: 5/60 steps``."""
    is_named = pair.name.lower() in ("", "progress", "train", "training", "completed", "done")
    return is_named and pair.slash is not None and _OF_STEPS.match(text, pair.slash[1]) is not None


def is_epoch(pair: Pair, text: str) -> bool:
    """Whether `pair` of `text` is the number of an epoch, a whole one."""
    return _EPOCH_NAME.fullmatch(pair.name) is not None and _INTEGER.fullmatch(text, pair.start, pair.end) is not None


def _bracketed_shape(text: str, pairs: list[Pair], others: list[tuple[int, int]]) -> Shape | None:
    match = _BRACKETED.match(text)
    if match is None or not any(MEASURE.search(pair.key) for pair in pairs):
        return None
    group = match.lastindex or 1
    rest = [pair for pair in pairs if pair.start != match.start(group)]
    return Shape(fields_of(rest, others), others, match.span(group), "step")


def _leading_shape(text: str, pairs: list[Pair], others: list[tuple[int, int]]) -> Shape | None:
    """A line that begins with its place alone."""
    if not any(MEASURE.search(pair.key) for pair in pairs):
        return None
    match = _PAIRED.match(text) or _TWO_NUMBERS.match(text)
    if match is not None:
        rest = [pair for pair in pairs if pair.start >= match.end()]
        return Shape(fields_of(rest, others), others, match.span(2), "batch", epoch=match.span(1))
    match = _LOSS_STEP.match(text)
    if match is not None:
        rest = [pair for pair in pairs if pair.start >= match.end()]
        fields = [(match[1], match.span(3)), *fields_of(rest, others)]
        return Shape(fields, others, match.span(2), "step")
    match = _OF_EPOCH.match(text)
    if match is not None:
        rest = [pair for pair in pairs if pair.start >= match.end()]
        return Shape(fields_of(rest, others), others, match.span(1), "epoch", match.span(2), secondary=True)
    match = _BARRED.match(text)
    if match is not None:
        rest = [pair for pair in pairs if pair.start >= match.end()]
        return Shape(fields_of(rest, others), others, match.span(1), "step")
    match = _LEADING.match(text)
    if match is None or not with_multiplier(match[1]) <= with_multiplier(match[2]):
        return None
    if "." in match[1] and match[1][-1].isdigit():
        return None  # a size or a time of a whole
    rest = [pair for pair in pairs if pair.start >= match.end()]
    return Shape(fields_of(rest, others), others, match.span(1), "step", match.span(2))


def _nested_shape(match: re.Match[str], pairs: list[Pair], others: list[tuple[int, int]]) -> Shape:
    kind = next(kind for kind in "123" if match[f"e{kind}"] is not None)
    epoch = match.span(f"e{kind}")
    epochs = match.span(f"E{kind}") if match[f"E{kind}"] is not None else None
    begin, end = epoch[0], match.end("N")
    rest = [pair for pair in pairs if not begin <= pair.start < end]
    return Shape(
        fields_of([pair for pair in rest if not pair.key.startswith(" ")], others),
        others,
        match.span("n"),
        "step",
        match.span("N"),
        epoch,
        epochs,
    )


def _mark_evaluation(text: str, shape: Shape) -> None:
    """Metrics of a line that is headed "eval" or "test" are not the training's: their keys say so."""
    first_key, (start, _) = next(
        (field for field in shape.fields if not _EPOCH_NAME.fullmatch(field[0])), shape.fields[0]
    )
    head = text[:start]
    head = head[: head.rfind(first_key.split(" (")[0])] if first_key.split(" (")[0] in head else head
    if EVAL_WORD.search(head) or _RESULTS.match(text):
        shape.fields = [(key if EVAL_WORD.search(key) else f"eval/{key}", span) for key, span in shape.fields]


def is_plain(line: Line, shape: Shape) -> bool:
    """Whether `line` holds little but the values it measured: it is a result, no setting and no sentence."""
    text = line.text
    if line.scan().others or len(shape.fields) > _MOST_RESULTS or text.startswith(("  ", "\t", '"')):
        return False
    keys = [key for key, _ in shape.fields]
    measured = [key for key in keys if key.lower() != "epoch" and not _AMOUNT.fullmatch(key)][:1]
    if not all(MEASURE.search(key) or EVAL_WORD.search(key) for key in measured):
        return False
    if any(SETTING.search(key) for key in keys) or not any(MEASURE.search(key) for key in keys):
        return False
    left = text
    for key in keys:
        left = left.replace(key.split(" (")[0].removeprefix("eval/"), " ", 1)
    return len(re.findall(r"[A-Za-z]{2,}", left)) <= _MAX_WORDS_OUTSIDE


class FlatDialect(Dialect):
    """A dialect whose records are single lines of pairs. Subclasses say which lines are theirs, and their shape."""

    secondary: ClassVar[bool] = False

    @abstractmethod
    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        shape = self.shape(line, sink)
        if shape is None or not shape.fields:
            return False
        shape.secondary = shape.secondary or self.secondary
        is_wide = len(line.text) > LONG or len(shape.fields) + len(shape.others) > _WIDE
        if is_wide:
            sink.emit(sink.wide.learn(line.text, shape, self.name), line)
            return True
        if not sink.may_learn(line.text):
            sink.emit(read_once(line.text, shape, self.name), line)
            return True
        template = Template(line.text, shape, self.name)
        reading: Reading | None = template.read(line.text)
        if reading is None:
            return False
        if sink.has_records and sink.templates.odd_key(line.text, template.keys):
            sink.cannot_read(line)  # in part
        else:
            sink.learn(template)
        sink.emit(reading, line)
        return True


class PatternDialect(FlatDialect):
    """A flat dialect that is known by a pattern of its lines and needs nothing else."""

    pattern: ClassVar[re.Pattern[str]]

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        return shape_of(line, needs_step=False) if self.pattern.search(line.text) else None
