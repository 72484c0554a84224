"""The net under the dialects: any line that names a step and a metric, whatever the words."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import EVAL_WORD, MEASURE, SETTING, FlatDialect, is_epoch, shape_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_TYPICAL = re.compile(r"average|mean|validation|val\b|eval|test", re.IGNORECASE)
_MAX_WORDS_OUTSIDE = 3
_EPOCH_WITHIN = 2


class Generic(FlatDialect):
    """``key value``, ``key=value`` and ``key: value``, joined by anything."""

    name = "generic"
    tokens = (b"step", b"iter", b"epoch", b"update", b"loss", b"bpb", b"perplexity", b"reward", b"accuracy", b"ppl")
    samples = (
        b"Step 0: grad_norm=2.0833, loss=9.2315, param_norm=1377.8652\nStep 100: grad_norm=1.9, "
        b"loss=7.01, param_norm=1378.1\n",
        b"[Step 1/100] Loss: 5.3000 | Global Tokens/s: 870.33 | Peak Mem: 21.30\n"
        b"[Step 2/100] Loss: nan | Global Tokens/s: 871.01 | Peak Mem: 21.30\n",
        b"epoch: 0|step: 0|ppo_ep: 1|act_loss: 0.20|cri_loss: 0.12\naverage reward score: -0.6\n",
        b"train step=7 lr=1.0e-04 loss=2.5 tokens_per_sec=1,204\n",
    )

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
        text = line.text
        if line.scan().others or len(shape.fields) > 8 or text.startswith(("  ", "\t", '"')):
            return False
        keys = [key for key, _ in shape.fields]
        measured = [key for key in keys if key.lower() != "epoch"][:1]
        if not all(MEASURE.search(key) or EVAL_WORD.search(key) for key in measured):
            return False
        if any(SETTING.search(key) for key in keys) or not any(MEASURE.search(key) for key in keys):
            return False
        left = text
        for key in keys:
            left = left.replace(key.split(" (")[0], " ", 1)
        words = re.findall(r"[A-Za-z]{2,}", left)
        if len(words) > _MAX_WORDS_OUTSIDE:
            return False
        return any(_TYPICAL.search(key) for key in keys) or sink.has_records
