"""Facts of the run that a text log states once: argument tables, settings, sentences of trainers at the start."""

from __future__ import annotations

import re

from trainmon.tails.formats.numbers import with_multiplier

# A name as trainers spell it (lower case, blanks and dashes as underscores) -> the fact. Ordered by who wins nothing.
NAMES: dict[str, str] = {
    "train_iters": "total_steps",
    "max_steps": "total_steps",
    "num_iterations": "total_steps",
    "max_iters": "total_steps",
    "num_train_steps": "total_steps",
    "total_steps": "total_steps",
    "max_train_steps": "total_steps",
    "total_optimization_steps": "total_steps",
    "total_training_steps": "total_steps",
    "train_batch_size": "batch_size",
    "global_batch_size": "batch_size",
    "total_train_batch_size": "batch_size",
    "seq_length": "seq_length",
    "max_seq_len": "seq_length",
    "train_seq_len": "seq_length",
    "train_seq_length": "seq_length",
    "sequence_len": "seq_length",
    "total_batch_size": "tokens_per_batch",
    "train_batch_tokens": "tokens_per_batch",
    "clip_grad": "clip_threshold",
    "gradient_clipping": "clip_threshold",
    "max_grad_norm": "clip_threshold",
    "grad_clip": "clip_threshold",
    "lr": "peak_lr",
    "learning_rate": "peak_lr",
    "lr_warmup_iters": "warmup_steps",
    "warmup_steps": "warmup_steps",
    "num_warmup_steps": "warmup_steps",
    "warmup_iters": "warmup_steps",
    "warmup_iterations": "warmup_steps",
    "num_layers": "num_layers",
    "hidden_size": "hidden_size",
    "num_experts": "num_experts",
    "world_size": "world_size",
    "save_interval": "checkpoint_interval",
    "save_steps": "checkpoint_interval",
    "params_dtype": "precision",
    "precision": "precision",
    "optimizer": "optimizer",
    "number_of_parameters": "parameters",
    "number_of_trainable_parameters": "parameters",
    "model_params": "parameters",
}
_WORDS = frozenset({"params_dtype", "precision", "optimizer"})
_VALUE = r"([-+.\w]*\d[\w.,+-]*|torch\.\w+|[A-Za-z][\w.-]*)"
_DOTTED = re.compile(rf"\s*(\w[\w -]*?) \.{{3,}} {_VALUE}")
_SETTING = re.compile(
    rf"[\"'>\s]*([A-Za-z][\w .-]*?)[\"']?\s*(?:\([^)]*\)\s*)?(?::|=|: *=)\s*[\"']?{_VALUE}[\"']?,?\s*(?:\(.*\))?\s*$"
)
_INLINE = re.compile(rf"(?<![\w.])([a-z]\w*)\s?[:=]\s?{_VALUE}(?=[\s,)]|$)")
_TABLE = re.compile(rf"\| ([A-Za-z][\w ()]*?)\s+\| {_VALUE}\s+\|")
_PARAMETERS = re.compile(
    r"(?:number of param(?:eter)?s|model[_ ]params|total param(?:eter)?s|num_parameters)\s*[:=]\s*([\d.,]+[KMBT]?)\b",
    re.I,
)
_GPU = re.compile(r"NVIDIA ((?:GeForce |Tesla |RTX )?[A-Z]{1,4}\d{2,5}[\w-]*(?: \d+GB)?)|(AMD Instinct MI\d+\w*)")
_GPU_MEMORY = re.compile(r"\d+MiB / {1,4}(\d+)MiB")
_WORLD = re.compile(r"(?:distributed )?world[_ ]size\s*[:=]\s*(\d+)", re.I)
_PROGRESS = re.compile(r"Progress on: \S+/([\d.]+k?)(?:it)? rate:")

TOKENS: tuple[bytes, ...] = (
    b"train_iters",
    b"train-iters",
    b"max_steps",
    b"max-steps",
    b"num_iterations",
    b"max_iters",
    b"num_train_steps",
    b"total optimization steps",
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
    b"total_batch_size",
    b"total_steps",
    b"nvidia ",
    b"mib / ",
    b"amd instinct",
)
_COUNTS = frozenset(
    {"total_steps", "batch_size", "seq_length", "tokens_per_batch", "warmup_steps", "num_layers", "parameters"}
)
_LONGEST = 4000


def facts_of(text: str) -> list[tuple[str, float | str]]:
    """The facts that `text`, one line, states.

    >>> facts_of("  train_iters ..................................... 500000")
    [('total_steps', 500000.0)]
    >>> facts_of("number of parameters: 124.5M"), facts_of("  Total optimization steps = 8,264")
    ([('parameters', 124500000.0)], [('total_steps', 8264.0)])
    """
    if len(text) > _LONGEST:
        return []
    match = _PROGRESS.search(text)
    if match is not None:
        return _fact("max_steps", match[1])
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
    found = []
    for match in _INLINE.finditer(text):
        if match[1] in NAMES and match[1] not in ("lr", "learning_rate", "precision", "optimizer", "hidden_size"):
            found += _fact(match[1], match[2])
    match = _WORLD.search(text)
    if match is not None and not found:
        found = _fact("world_size", match[1])
    return found


def _fact(name: str, raw: str) -> list[tuple[str, float | str]]:
    spelled = re.sub(r"[ -]+", "_", re.sub(r"\(.*?\)", "", name).strip().lower())
    key = NAMES.get(spelled)
    if key is None:
        return []
    if spelled in _WORDS:
        word = raw.removeprefix("torch.").strip("\"',")
        return [(key, word)] if word[:1].isalpha() and word not in ("None", "null") else []
    value = with_multiplier(raw.rstrip(",").replace("_", ""))
    if not value > 0 or (key in _COUNTS and value < 1):
        return []
    return [(key, value)]
