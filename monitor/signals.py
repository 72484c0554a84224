"""The 39 rows of METRICS.md (after Deng, "Reading a Pretraining Run", 2026) as data.

One table feeds detectors, inventory, charts, help and docs.
"""

from __future__ import annotations

from typing import Literal

from trainmon.tails.quick_dataclass import dataclass

Priority = Literal["P0", "P1", "P2"]
Reduction = Literal["mean_by_tokens", "max", "sum", "last", "none"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One named quantity.

    `row`: its number in METRICS.md's table, 0 for signals read beside the rows. `unit`: of the stored values
    ("" for a pure number, "share" for 0..1). `better`: which way is good. `reduction`: over ranks. `rule`: the
    derivation rule that can give it (D1-D17), "" when it must be logged. `cadence`: as METRICS.md writes it.
    `to_get_it`: what to log, in one clause. `condition`: the row does not apply unless the run has it.
    """

    id: str
    row: int
    group: str
    title: str
    unit: str = ""
    better: Literal["down", "up", "steady", ""] = "steady"
    reduction: Reduction = "none"
    rule: str = ""
    cadence: str = "step"
    priority: Priority = "P1"
    to_get_it: str = ""
    condition: Literal["", "moe", "modality", "sources", "ranks", "residual_gates"] = ""


_S = Signal
# fmt: off
SIGNALS: tuple[Signal, ...] = (
    _S("loss.train", 1, "Loss", "training loss", "nats", "down", "mean_by_tokens", "D1", "step", "P0",
       "log the mean token loss every step"),
    _S("loss.worst_rank", 2, "Loss", "worst rank's loss", "nats", "down", "max", "D2", "step", "P0",
       "log each rank's loss with its rank", "ranks"),
    _S("loss.source", 3, "Loss", "loss by source", "nats", "down", "mean_by_tokens", "D3", "1-10", "P0",
       "log loss sums and token counts for each data source", "sources"),
    _S("loss.modality", 3, "Loss", "loss by modality", "nats", "down", "mean_by_tokens", "D3", "1-10", "P0",
       "log loss sums and token counts for each modality", "modality"),
    _S("grad.norm", 4, "Gradients", "gradient norm", "", "steady", "none", "", "step", "P0",
       "log the global gradient norm before clipping, every step"),
    _S("grad.clip_rate", 5, "Gradients", "clip rate", "share", "steady", "none", "D4", "step", "P0",
       "log the gradient norm; the rate follows from it"),
    _S("spike.co_count", 6, "Gradients", "co-spikes", "steps", "down", "sum", "D5", "step", "P0",
       "log loss and gradient norm on the same step"),
    _S("spike.score", 7, "Gradients", "spike score", "z", "down", "none", "D6", "step", "P1",
       "log loss and gradient norm"),
    _S("grad.abs_mean", 8, "Gradients", "mean |gradient|", "", "steady", "mean_by_tokens", "", "step", "P1",
       "log sum of |g| and element count"),
    _S("grad.abs_max", 8, "Gradients", "max |gradient|", "", "steady", "max", "", "step", "P1",
       "log max |g| over all elements and ranks"),
    _S("grad.zero_fraction", 9, "Gradients", "zero gradients", "share", "down", "none", "", "step", "P1",
       "log the share of zero gradient elements, embeddings and experts apart"),
    _S("count.skipped_steps", 10, "Gradients", "skipped steps", "steps", "down", "sum", "D7", "step", "P1",
       "log a counter of skipped optimiser steps"),
    _S("count.bad_replays", 10, "Gradients", "bad replays", "steps", "down", "sum", "D7", "step", "P1",
       "keep the log of the attempt before a restart"),
    _S("sys.step_time", 11, "System", "step time", "s", "down", "max", "D8", "step", "P0",
       "log seconds per step, or time stamps on the lines"),
    _S("sys.tokens_per_second", 11, "System", "tokens/s", "tokens/s", "up", "sum", "D8", "step", "P0",
       "log tokens per second, or tokens per batch and step time"),
    _S("sys.peak_memory", 12, "System", "peak memory", "B", "down", "max", "D2", "step", "P0",
       "log torch.cuda.max_memory_allocated(), max over ranks"),
    _S("sys.memory_share", 12, "System", "memory share", "share", "down", "max", "D2", "step", "P0",
       "log peak memory with the card's capacity"),
    _S("sys.reserved_memory", 12, "System", "reserved memory", "B", "down", "max", "D2", "step", "P0",
       "log torch.cuda.max_memory_reserved() beside the allocated memory"),
    _S("sys.fragmentation", 12, "System", "fragmented memory", "B", "down", "max", "D2", "step", "P0",
       "log reserved and allocated memory: the difference is what fragmentation holds"),
    _S("sys.compute_rate", 13, "System", "FLOP/s per GPU", "FLOP/s", "up", "none", "D9", "step", "P0",
       "log TFLOP/s, or give parameters and GPU type in the config"),
    _S("sys.mfu", 13, "System", "MFU", "share", "up", "none", "D9", "step", "P0",
       "log MFU, or give parameters and GPU type in the config"),
    _S("sys.straggler", 14, "System", "straggler ratio", "", "down", "max", "D10", "step", "P1",
       "log each rank's compute time before the collectives", "ranks"),
    _S("sys.comm_wait", 15, "System", "communication wait", "s", "down", "max", "", "10", "P1",
       "log seconds spent in exposed collectives"),
    _S("device.temperature", 16, "System", "GPU temperature", "C", "down", "max", "", "step", "P1",
       "log the temperature of each GPU"),
    _S("device.utilization", 16, "System", "GPU utilisation", "share", "up", "none", "", "step", "P1",
       "log the utilisation of each GPU"),
    _S("device.power", 16, "System", "GPU power", "W", "steady", "sum", "", "step", "P1", "log the power of each GPU"),
    _S("device.clock", 16, "System", "GPU clock", "MHz", "up", "none", "", "step", "P1",
       "log the SM clock of each GPU: it falls when a card is throttled"),
    _S("device.errors", 16, "System", "GPU errors", "", "down", "sum", "", "step", "P1",
       "log ECC errors and replays of each GPU, a counter"),
    _S("host.memory_share", 16, "System", "host memory", "share", "down", "max", "", "step", "P1",
       "log the share of the host's memory in use"),
    _S("host.cpu", 16, "System", "host CPU", "share", "steady", "none", "", "step", "P1", "log the host's CPU load"),
    _S("tensor.abs_max", 17, "Tensors", "output AbsMax", "", "steady", "max", "", "100", "P0",
       "log max |logit| at the output every 100 steps"),
    _S("tensor.rms", 18, "Tensors", "tensor RMS", "", "steady", "none", "", "100", "P1",
       "log the RMS of activations or weights by layer"),
    _S("tensor.abs_mean", 18, "Tensors", "mean |tensor|", "", "steady", "none", "", "100", "P1",
       "log the mean absolute value by layer"),
    _S("tensor.zero_fraction", 19, "Tensors", "zero activations", "share", "down", "none", "", "100", "P1",
       "log the share of zero activations by layer"),
    _S("tensor.dead_fraction", 19, "Tensors", "dead neurons", "share", "down", "none", "", "100", "P1",
       "log the share of neurons that no token activates, by layer"),
    _S("update.ratio", 20, "Tensors", "update ratio", "", "steady", "none", "D11", "100", "P1",
       "log RMS(dw)/RMS(w) by layer every 100 steps"),
    _S("tensor.kurtosis", 21, "Tensors", "kurtosis", "", "down", "none", "", "100", "P2",
       "log activation kurtosis by layer"),
    _S("optim.state", 22, "Tensors", "optimiser state", "", "steady", "none", "", "demand", "P2",
       "log norms of the optimiser's moments by parameter"),
    _S("moe.maxvio", 23, "Experts", "MaxVio", "", "down", "max", "D12", "step", "P0",
       "log tokens per expert by layer, or MaxVio", "moe"),
    _S("moe.imbalance", 23, "Experts", "expert imbalance", "", "down", "max", "D12", "step", "P0",
       "log tokens per expert by layer", "moe"),
    _S("moe.shard_imbalance", 24, "Experts", "shard imbalance", "", "down", "max", "D12", "step", "P0",
       "log tokens per expert-parallel shard", "moe"),
    _S("moe.entropy", 25, "Experts", "router entropy", "", "steady", "none", "D13", "100", "P1",
       "log normalised router entropy by layer", "moe"),
    _S("moe.load", 26, "Experts", "expert load", "", "steady", "sum", "", "demand", "P2",
       "log tokens per expert by layer", "moe"),
    _S("moe.router_score", 26, "Experts", "router score", "", "steady", "none", "", "demand", "P2",
       "log router scores by expert", "moe"),
    _S("residual.branch_scale", 27, "Residual", "branch scale", "", "steady", "none", "", "100", "P0",
       "log |branch|/|stream| by layer every 100 steps"),
    _S("residual.block_importance", 28, "Residual", "block importance", "", "steady", "none", "D14", "100", "P1",
       "log cos(input, output) of each block"),
    _S("residual.angle", 28, "Residual", "residual angle", "", "steady", "none", "D14", "100", "P1",
       "log cos(input, output) of each block"),
    _S("residual.bf16_noop", 29, "Residual", "bf16 no-op share", "share", "down", "none", "", "100", "P1",
       "log the share of residual additions lost to rounding"),
    _S("residual.gate_saturation", 30, "Residual", "gate saturation", "share", "down", "none", "", "100", "P1",
       "log the share of saturated gates", "residual_gates"),
    _S("modality.token_share", 31, "Modality", "token share", "share", "steady", "sum", "D3", "1-10", "P0",
       "log token counts for each modality", "modality"),
    _S("modality.scale_ratio", 32, "Modality", "embedding scale ratio", "", "steady", "none", "", "100", "P0",
       "log RMS(media embeddings)/RMS(text embeddings)", "modality"),
    _S("modality.encoder_grad_share", 33, "Modality", "encoder gradient share", "share", "steady", "none", "D15", "100",
       "P1", "log the encoder's gradient norm", "modality"),
    _S("eval.nll", 34, "Evaluation", "held-out loss", "nats", "down", "mean_by_tokens", "D16", "eval", "P0",
       "evaluate held-out loss every 0.5-2% of training"),
    _S("eval.bits_per_byte", 34, "Evaluation", "bits per byte", "bits/B", "down", "mean_by_tokens", "D16", "eval", "P0",
       "log held-out loss with token and byte counts"),
    _S("eval.perplexity", 34, "Evaluation", "held-out perplexity", "", "down", "none", "D16", "eval", "P0",
       "evaluate held-out loss"),
    _S("eval.accuracy", 35, "Evaluation", "task accuracy", "share", "up", "none", "", "ckpt", "P0",
       "run a fixed task set at key checkpoints"),
    _S("eval.greedy", 36, "Evaluation", "greedy generation", "share", "up", "none", "", "ckpt", "P0",
       "score greedy generations at key checkpoints"),
    _S("eval.media_gain", 37, "Evaluation", "media gain", "", "up", "none", "D17", "ckpt", "P0",
       "score with and without media at key checkpoints", "modality"),
    _S("eval.sampled", 38, "Evaluation", "sampled generation", "share", "up", "none", "", "ckpt", "P1",
       "score sampled generations at key checkpoints"),
    _S("eval.iou", 38, "Evaluation", "grounding IoU", "share", "up", "none", "", "ckpt", "P1",
       "score grounding at key checkpoints", "modality"),
    _S("eval.averaged_weights", 39, "Evaluation", "averaged weights", "", "up", "none", "", "eval", "P1",
       "evaluate averaged weights beside the raw ones"),
    # Read beside the rows.
    _S("loss.rank", 0, "Loss", "loss by rank", "nats", "down"),
    _S("loss.aux", 0, "Loss", "auxiliary loss", "", "down"),
    _S("loss.sum", 0, "Loss", "loss sum", "nats", "down", "sum", "", "step", "P1",
       "log each rank's sum of masked token losses"),
    _S("loss.tokens", 0, "Loss", "valid tokens", "tokens", "", "sum", "", "step", "P1",
       "log each rank's, source's or modality's count of tokens that carry loss"),
    _S("optim.lr", 0, "Optimiser", "learning rate", "", ""),
    _S("optim.loss_scale", 0, "Optimiser", "loss scale"),
    _S("batch.size", 0, "Progress", "global batch size", "samples", ""),
    _S("batch.tokens", 0, "Progress", "tokens per batch", "tokens", ""),
    _S("batch.seq_length", 0, "Progress", "sequence length", "tokens", ""),
    _S("count.nan_steps", 0, "Gradients", "NaN iterations", "steps", "down"),
    _S("count.alloc_retries", 0, "System", "allocator retries", "", "down"),
    _S("grad.rank_norm", 0, "Gradients", "gradient norm by part"),
    _S("param.norm", 0, "Tensors", "parameter norm"),
    _S("param.rms", 0, "Tensors", "parameter RMS"),
    _S("update.norm", 0, "Tensors", "update norm"),
    _S("update.rms", 0, "Tensors", "update RMS"),
    _S("moe.shard_load", 0, "Experts", "load by shard", "tokens", "steady", "sum"),
    _S("residual.cosine", 0, "Residual", "cosine of block input and output"),
    _S("modality.encoder_grad", 0, "Modality", "encoder's gradient norm"),
    _S("eval.tokens", 0, "Evaluation", "held-out tokens", "tokens", "", "sum"),
    _S("eval.bytes", 0, "Evaluation", "held-out bytes", "B", "", "sum"),
    _S("eval.loss_sum", 0, "Evaluation", "held-out loss sum", "nats", "down", "sum"),
    _S("eval.with_media", 0, "Evaluation", "score with media", "", "up"),
    _S("eval.without_media", 0, "Evaluation", "score without media", "", "up"),
    _S("sys.samples_per_second", 0, "System", "samples/s", "samples/s", "up"),
    _S("sys.steps_per_second", 0, "System", "steps/s", "steps/s", "up"),
    _S("sys.rank_step_time", 0, "System", "step time by rank", "s", "down"),
    _S("sys.data_wait", 0, "System", "data wait", "s", "down"),
    _S("sys.rank_memory", 0, "System", "memory by rank", "B", "down"),
    _S("progress.step", 0, "Progress", "step", "", "up"),
    _S("progress.tokens", 0, "Progress", "tokens seen", "tokens", "up"),
    _S("progress.samples", 0, "Progress", "samples seen", "samples", "up"),
    _S("progress.epoch", 0, "Progress", "epoch", "", "up"),
    _S("progress.flops", 0, "Progress", "FLOPs spent", "FLOP", "up"),
    _S("source.token_share", 0, "Loss", "token share by source", "share"),
    _S("reward.mean", 0, "RL", "reward", "", "up"),
    _S("reward.std", 0, "RL", "reward spread"),
    _S("reward.part", 0, "RL", "reward part", "", "up"),
    _S("policy.kl", 0, "RL", "KL to the reference", "nats"),
    _S("policy.entropy", 0, "RL", "policy entropy", "nats"),
    _S("policy.length", 0, "RL", "response length", "tokens"),
    _S("policy.clip_fraction", 0, "RL", "clip fraction", "share"),
    _S("policy.zero_variance", 0, "RL", "groups without variance", "share", "down"),
    _S("policy.length_max", 0, "RL", "longest response", "tokens"),
    _S("policy.truncated", 0, "RL", "responses cut at the limit", "share", "down"),
    _S("policy.generation_time", 0, "RL", "generation time", "s", "down"),
    _S("sample.length", 0, "Samples", "length of samples", "tokens"),
    _S("sample.empty", 0, "Samples", "empty samples", "share", "down"),
    _S("sample.repetition", 0, "Samples", "repetition in samples", "share", "down"),
    _S("sample.distinct", 0, "Samples", "distinct words of samples", "share", "up"),
    _S("sample.gibberish", 0, "Samples", "gibberish in samples", "share", "down"),
)
# fmt: on

BY_ID: dict[str, Signal] = {signal.id: signal for signal in SIGNALS}

FIRST_SCREEN: tuple[tuple[str, ...], ...] = (
    ("loss.train", "loss.worst_rank"),
    ("loss.source", "loss.modality", "eval.nll"),
    ("grad.norm", "grad.clip_rate"),
    ("spike.co_count", "spike.score"),
    ("sys.step_time", "sys.tokens_per_second"),
    ("sys.peak_memory", "sys.memory_share"),
    ("moe.maxvio", "moe.imbalance"),
    ("tensor.abs_max",),
    ("eval.bits_per_byte", "eval.nll", "eval.perplexity"),
)
