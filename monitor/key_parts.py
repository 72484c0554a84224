"""What of a key says whose number it is: a rank, a layer, an expert. Taken out, the rest is the key of the number.

Trainers put it anywhere: ``rank5/step_time``, ``step_time_rank5``, ``perf/rank_5/compute_time``, ``loss@rank3``,
``gpu3/memory_gb``, ``layer.3.mlp/grad_norm``, ``moe/l3/e5/tokens``, ``expert_07_load``.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_BEFORE = r"(?:^|(?<=[ /@|:#(]))"
_BEHIND = r"(?=[ /@|:)#]|$)"
_RANK = lazy(
    rf"{_BEFORE}(?:(?:global|local|dp|data parallel|train|trainer|learner|ddp|fsdp|ray)[ /])?"
    rf"(?P<word>rank|worker|gpu|cuda|device|proc|process|replica|npu|card|tpu|chip|shard rank)(?: ?id)?[ /:=#]{{0,2}}"
    rf"(?P<number>\d{{1,6}}){_BEHIND}|{_BEFORE}r(?P<number2>\d{{1,6}})(?=/)"
)
_NODE = lazy(rf"{_BEFORE}(?:node|host|machine)[ /:=#]{{0,2}}(?P<number>\d{{1,5}}){_BEHIND}")
_LAYER = lazy(
    rf"{_BEFORE}(?:layers?|blocks?|blk|lyr|resblocks?|h|decoder layer|encoder layer)(?: ?idx| ?id)?[ /:=#]{{0,2}}"
    rf"(?P<number>\d{{1,4}}){_BEHIND}"
    # "l2 norm", "l1 loss" are norms and losses of that order
    rf"|{_BEFORE}l(?![12] (?:norm|reg|loss|penalty|dist|weight|grad))(?P<number2>\d{{1,4}}){_BEHIND}"
)
_EXPERT = lazy(
    rf"{_BEFORE}experts?(?: ?idx| ?id)?[ /:=#]{{0,2}}(?P<number>\d{{1,5}}){_BEHIND}"
    rf"|{_BEFORE}e(?P<number2>\d{{1,5}}){_BEHIND}"
)
_LONGEST: Final = 400
_JOINTS: Final = " /@|:()#"
_CARDS: Final = ("gpu", "cuda", "device", "npu", "card", "tpu", "chip")

# The last words of a number that belongs to a layer or an expert -> its signal; longest first.
_OF_LAYER: Final[dict[str, str]] = {
    "grad.rank_norm": "grad norm|gradient norm|gnorm|grad l2|grad/norm|gradient/norm|gradnorm|grad l2 norm",
    "grad.abs_max": "grad abs max|grad max|grad absmax|max grad|gradient max|grad/max|grad/abs max",
    "grad.abs_mean": "grad abs mean|grad mean abs|grad/abs mean",
    "grad.zero_fraction": "grad zero fraction|grad sparsity|grad zero frac|grad frac zero",
    "tensor.rms": "rms|act rms|activation rms|output rms|out rms|hidden rms",
    "tensor.abs_max": "abs max|absmax|max abs|amax|act max|activation max|act abs max",
    "tensor.abs_mean": "abs mean|mean abs|absmean|act abs mean",
    "tensor.zero_fraction": "zero fraction|zero frac|frac zero|fraction zero|sparsity|zeros",
    "tensor.dead_fraction": "dead fraction|dead frac|dead neurons|dead neuron fraction|dormant fraction|dead",
    "tensor.kurtosis": "kurtosis|kurt",
    "update.ratio": "update ratio|update to weight ratio|update to weight|upd ratio|ud ratio|update/ratio|update/weight"
    "|update to param ratio|relative update",
    "update.rms": "update rms",
    "update.norm": "update norm",
    "param.norm": "weights/norm|params/norm|weight norm|param norm|parameter norm|w norm|weight/norm|param/norm",
    "param.rms": "weight rms|param rms",
    "moe.entropy": "router entropy|gate entropy|routing entropy|gating entropy|router/entropy|gate/entropy"
    "|routing/entropy|moe/entropy",
    "moe.maxvio": "maxvio|max vio",
    "moe.imbalance": "load imbalance|expert imbalance|imbalance",
    "residual.branch_scale": "branch scale|branch ratio|residual ratio",
    "residual.block_importance": "block importance|block influence|importance|influence",
    "residual.angle": "residual angle|angle|angular distance",
    "residual.cosine": "cos sim|cosine similarity|cosine|cosine sim|cos",
    "residual.gate_saturation": "gate saturation|gate saturated|saturated gates",
    "residual.bf16_noop": "bf16 noop|bf16 no op|noop fraction",
}
_OF_EXPERT: Final[dict[str, str]] = {
    "moe.load": "load|tokens|token count|num tokens|count|usage|tokens per expert|load fraction|frac|fraction|share"
    "|hits|assigned|routed tokens|token fraction|load frac|utilization",
    "moe.router_score": "score|router score|gate score|prob|router prob|gate prob|mean prob|bias|router bias",
}
_AUX: Final = ("aux loss", "z loss", "balance loss", "balancing loss", "lb loss", "router loss", "auxiliary loss")
_LAYER_WORDS = {words: signal for signal, many in _OF_LAYER.items() for words in many.split("|")}
_EXPERT_WORDS = {words: signal for signal, many in _OF_EXPERT.items() for words in many.split("|")}
_LEADING_WORDS: Final = (
    "train|training|metrics|stats|model|transformer|moe|router|routing|experts|expert|layers|layer|debug|monitor|module"
    "|decoder|encoder|block|blocks|activations|activation|act|grads|grad|gradients|norms|norm"
)
_LEADING_GROUP: Final = frozenset(_LEADING_WORDS.split("|"))


@dataclass(slots=True)
class Parts:
    """`rest`: the key without what was taken out of it; `labels`: that. `is_card`: a card was named, not a rank."""

    rest: str
    labels: dict[str, str] = field(default_factory=dict)
    is_card: bool = False


def without_rank(text: str) -> Parts | None:
    """The rank (worker, card, process) of a normalised key taken out; None where it has none.

    >>> without_rank("perf/rank 5/compute time")
    Parts(rest='perf/compute time', labels={'rank': '5'}, is_card=False)
    >>> without_rank("memory/gpu 0").rest, without_rank("tokens per gpu")
    ('memory', None)
    >>> without_rank("node 1 rank 3 loss").labels
    {'rank': '1.3'}
    """
    if not _has_digit(text):
        return None
    node, found = _NODE.search(text), _RANK.search(text)
    number = "" if node is None else str(int(node["number"]))
    if found is not None:
        own = str(int(found["number"] or found["number2"]))
        number = f"{number}.{own}" if number else own
        text = _without(text, found)
        node = _NODE.search(text)
    if not number:
        return None
    rest = text if node is None else _without(text, node)
    return Parts(rest, {"rank": number}, found is not None and found["word"] in _CARDS) if rest else None


def of_part(text: str) -> tuple[str, dict[str, str]] | None:
    """Signal and labels of a key that names a layer or an expert; None where it names neither, or nothing known of it.

    >>> of_part("layer 3 mlp/grad norm"), of_part("moe/l3/e5/tokens")
    (('grad.rank_norm', {'layer': '3', 'site': 'mlp'}), ('moe.load', {'layer': '3', 'expert': '5'}))
    >>> of_part("expert 07 load"), of_part("blocks 12 attn out/rms"), of_part("l2 norm/grad")
    (('moe.load', {'expert': '7'}), ('tensor.rms', {'layer': '12', 'site': 'attn out'}), None)
    """
    if not _has_digit(text):
        return None
    labels: dict[str, str] = {}
    rest = text[:_LONGEST]
    for name, pattern in (("layer", _LAYER), ("expert", _EXPERT)):
        found = pattern.search(rest)
        if found is not None:
            labels[name] = str(int(found["number"] or found["number2"]))
            rest = _without(rest, found)
    if not labels:
        return None
    signal, site = _named(rest, _EXPERT_WORDS if "expert" in labels else _LAYER_WORDS)
    if not signal and "expert" in labels:
        signal, site = _named(rest, _LAYER_WORDS)
    if not signal and "expert" in labels and not (set(rest.replace("/", " ").split()) - _LEADING_GROUP):
        signal, site = "moe.load", ""  # "moe/layer 3/expert 5": how much it had
    if not signal and rest.endswith(_AUX):
        signal, site = "loss.aux", ""
        labels["name"] = rest.rpartition("/")[2].removesuffix("loss").strip()
    if not signal:
        return None
    return signal, labels | ({"site": site} if site else {})


def has_part(text: str) -> bool:
    """Whether the key names a layer or an expert."""
    return _has_digit(text) and (_LAYER.search(text) is not None or _EXPERT.search(text) is not None)


def _has_digit(text: str) -> bool:
    """What has none names no rank, layer or expert."""
    return any(map(str.isdigit, text))


def _named(rest: str, words: dict[str, str]) -> tuple[str, str]:
    """The signal that `rest` ends or begins with, and what else it says; ("", "") when it is none."""
    if rest in words:
        return words[rest], ""
    cuts = [place for place, letter in enumerate(rest) if letter in " /"]
    for cut in cuts:  # the longest end first
        if rest[cut + 1 :] in words:
            return words[rest[cut + 1 :]], _site(rest[:cut])
    for cut in reversed(cuts):
        if rest[:cut] in words:
            return words[rest[:cut]], _site(rest[cut + 1 :])
    return "", ""


def _site(text: str) -> str:
    """``model/attn out`` -> ``attn out``: words that say no more than where the numbers are kept go."""
    parts = [part for part in text.split("/") if part.strip() and part.strip() not in _LEADING_GROUP]
    return "/".join(parts).strip()


def _without(text: str, found: re.Match[str]) -> str:
    """`text` without what was found, joined as its neighbours were."""
    before, behind = text[: found.start()], text[found.end() :]
    head, tail = before.rstrip(_JOINTS), behind.lstrip(_JOINTS)
    if not head or not tail:
        return (head or tail).strip(_JOINTS)
    is_path = "/" in before[len(head) :] or "/" in behind[: len(behind) - len(tail)]
    return head + ("/" if is_path else " ") + tail
