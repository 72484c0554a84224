"""The net under the dialects: any line that names a step and a metric, whatever the words."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import EVAL_WORD, MEASURE, SETTING, FlatDialect, is_epoch, is_plain, shape_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading, Shape, Template, read_once

_TYPICAL = re.compile(r"average|mean|validation|val\b|eval|test", re.IGNORECASE)
_OF_A_KIND = 3
_MOST_KINDS = 20
_EPOCH_WITHIN = 2


class Generic(FlatDialect):
    """``key value``, ``key=value`` and ``key: value``, joined by anything."""

    name = "generic"
    tokens = tuple(b"step iter epoch update loss bpb perplexity reward accuracy ppl rmse".split())
    samples = (
        b"Step 0: grad_norm=2.0833, loss=9.2315, param_norm=1377.8652\nStep 100: grad_norm=1.9, "
        b"loss=7.01, param_norm=1378.1\n",
        b"[Step 1/100] Loss: 5.3000 | Global Tokens/s: 870.33 | Peak Mem: 21.30\n"
        b"[Step 2/100] Loss: nan | Global Tokens/s: 871.01 | Peak Mem: 21.30\n",
        b"epoch: 0|step: 0|ppo_ep: 1|act_loss: 0.20|cri_loss: 0.12\naverage reward score: -0.6\n",
        b"train step=7 lr=1.0e-04 loss=2.5 tokens_per_sec=1,204\n",
        b"loss: 3.25\nloss: 3.125\nloss: 3.0\nloss: 2.75\n",
    )

    def __init__(self) -> None:
        self._doubtful: dict[tuple[str, ...], list[tuple[Template, Reading, Line]]] = {}

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if line.line_no <= sink.held_out and self._below_eval_heading(line, sink):
            return True
        if super().read(line, sink) or self._is_one_of_many(line, sink):
            return True
        if sink.has_records and sink.templates.odd_key(line.text):
            sink.cannot_read(line)
            return True
        return False

    def _below_eval_heading(self, line: Line, sink: Sink) -> bool:
        """Reads a result without a step, which a heading says to be of held-out data (``ppl: 12.1, loss: 2.5``). It is
        read by itself: elsewhere a line of this shape may be the training's."""
        shape = shape_of(line, needs_step=False)
        if shape is None or shape.step is not None or not is_plain(line, shape):
            return False
        sink.held_out = -1
        shape.fields = [(key if EVAL_WORD.search(key) else f"eval/{key}", span) for key, span in shape.fields]
        sink.emit(read_once(line.text, shape, self.name), line)
        return True

    def _is_one_of_many(self, line: Line, sink: Sink) -> bool:
        """Whether `line` measures something without a step, as nothing else in the file does: one such line may be
        a remark, the third of a kind shows that they are the records."""
        if sink.has_records or sink.is_telling or not line.text.strip()[:1].isalpha():
            return False
        shape = shape_of(line, needs_step=False)
        if shape is None or shape.step is not None or not is_plain(line, shape):
            return False
        keys = tuple(key for key, _ in shape.fields)
        template = Template(line.text, shape, self.name)
        reading = template.read(line.text)
        if reading is None or (keys not in self._doubtful and len(self._doubtful) >= _MOST_KINDS):
            return False
        held = self._doubtful.setdefault(keys, [])
        held.append((template, reading, line))
        if len(held) >= _OF_A_KIND:
            self._doubtful.clear()
            for template, reading, line in held:
                sink.learn(template)
                sink.emit(reading, line)
        return True

    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""
        shape = shape_of(line, needs_step=False)
        if shape is None or shape.step is not None:
            return shape
        if self._counts_epochs(line, shape):
            return shape
        return shape if self._is_measurement(line, shape, sink) else None

    @staticmethod
    def _counts_epochs(line: Line, shape: Shape) -> bool:
        """Whether the line sums an epoch up (``Epoch 3: train_loss=2.5``): a second account of the steps."""
        epoch = next((pair for pair in line.scan().pairs[:_EPOCH_WITHIN] if is_epoch(pair, line.text)), None)
        if epoch is None or epoch.prose or not any(MEASURE.search(key) for key, _ in shape.fields):
            return False
        if any(SETTING.search(key) for key, _ in shape.fields):
            return False
        shape.step, shape.step_key, shape.total = (epoch.start, epoch.end), "epoch", epoch.slash
        shape.others = [span for span in shape.others if span != epoch.slash]
        shape.fields = [field for field in shape.fields if field[1] != shape.step]
        shape.secondary = True
        return bool(shape.fields)

    def _is_measurement(self, line: Line, shape: Shape, sink: Sink) -> bool:
        """Whether a line without a step is a result (``validation loss: 3.2``) and no setting or sentence."""
        if sink.is_telling:  # a row of a box
            return False
        keys = [key for key, _ in shape.fields]
        return is_plain(line, shape) and (any(_TYPICAL.search(key) for key in keys) or sink.has_records)
