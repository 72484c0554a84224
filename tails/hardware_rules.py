"""How accelerators other than NVIDIA's, their drivers and their run-times say that they failed.

Rules as in `note_rules`; AMD (HIP, ROCm), Ascend (CANN, torch_npu, MindSpore), Intel (Level Zero, oneCCL, Gaudi), AWS
Neuron, and XLA on any of them.
"""

from __future__ import annotations

from typing import Final

from trainmon.tails.record import NoteKind
from trainmon.tails.rule import Rule, rule, up_to

_K = NoteKind

HARDWARE: Final[tuple[Rule, ...]] = (
    # No memory left on the device.
    rule(
        _K.CUDA_OOM,
        "hiperroroutofmemory|error_out_of_resources|error_out_of_device_memory|error_out_of_host_memory"
        "|cuda_error_out_of_memory",
        r"\bhipErrorOutOfMemory\b|\bHSA_STATUS_ERROR_OUT_OF_RESOURCES\b|\b[PU][IR]_(?:RESULT_)?ERROR_OUT_OF_RESOURCES\b"
        r"|\b(?:UR|ZE)_RESULT_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY\b|\bCUDA_ERROR_OUT_OF_MEMORY: ",
    ),
    rule(
        _K.CUDA_OOM,
        "failed to allocate memory|pt_devmem|failed to alloc device|nrt_resource|resource_exhausted: |oom when alloc",
        r"^E[A-Z0-9]\d{4}: .{0,80}Failed to allocate memory"
        r"|\bMODULE:PT_DEVMEM\b.{0,80}(?:Allocation failed|out of memory)"
        r"|\bFailed to alloc DEVICE memory\b|\bNRT_RESOURCE\b(?!\s?=)"
        rf"|RESOURCE_EXHAUSTED: {up_to('resource_exhausted', 300)}\breserve\b|\bOOM when allocating tensor\b",
    ),
    # What the kernel's driver says of the card.
    rule(
        _K.XID,
        "amdgpu|habanalabs|gpu hang|engine reset|wedged",
        rf"\bamdgpu\b{up_to('amdgpu', 80)}(?:\bring \w[\w.]{{0,30}} timeout|GPU reset begin|\buncorrectable\b"
        r"|\bpage fault\b|GPU recovery failed|\bPROTECTION_FAULT|GPU is lost|device lost)"
        rf"|\bhabanalabs\b{up_to('habanalabs', 80)}(?:\bstuck\b|\bTDR\b|going to (?:hard-?)?reset|fatal error|critical)"
        r"|\b(?:i915|xe)\b.{0,80}(?:GPU HANG|Engine reset|\bwedged\b)",
    ),
    # The run-time's last words.
    rule(
        _K.ERROR,
        "memory access fault|hw exception by|hsa_status_error|hip error|hiperror|rocblas error|miopen error"
        "|hipblas_status|miopenstatus",
        r"^(?:Memory access fault|HW Exception) by GPU\b|\bHSA_STATUS_ERROR_(?!OUT_OF_RES)\w{3,60}: "
        r"|\bHIP error: (?!out of memory|hipErrorOutOfMemory)"
        r"|\bhipError(?!NotReady|OutOfMemory|s?\b)\w{3,60}(?::|['\"]?\.?\s*$)"
        r"|^rocBLAS error: |^MIOpen Error: |\bHIPBLAS_STATUS_(?!SUCCESS)\w|\bmiopenStatus(?!Success)\w",
    ),
    rule(
        _K.ERROR,  # Ascend's codes: EI0002: [PID: 12] ... and those of torch_npu: ERR02200 DIST call hccl api failed.
        "[pid: |err0|err1|call runtime|call rt api",
        r"^(?:\[[^\]]{1,40}\] ?)?E[A-Z0-9]\d{4}: \[PID: (?!.{0,80}Failed to allocate memory)"
        r"|\bERR[01]\d{4} [A-Z]{2,6} \w|\bCall (?:runtime|rt api) \w{1,60} failed",
    ),
    rule(
        _K.ERROR,
        "level_zero backend|native api failed|_result_error_|ccl_error|synstatus|fatal error ::|graph compile failed"
        "|syn_api|synapse",
        r"\blevel_zero backend failed with error: \d|\bNative API failed\b|\b(?:UR|ZE)_RESULT_ERROR_(?!OUT_OF_)\w"
        r"|\|CCL_ERROR\||\bsynStatus ?= ?(?:synStatus )?[1-9]|\bFATAL ERROR :: MODULE:(?!PT_DEVMEM)"
        r"|^Graph compile failed|\[SYN_API\s{0,20}\]\[(?:critical|fatal)"
        r"|\bsynapse\b.{0,60}\bdevice (?:critical|fatal) error",
    ),
    rule(
        _K.ERROR,
        "nrt_timeout|nrt_exec_|nrt_failure|nrt_hw_error|nrt_invalid|nrt_queue_full|nrt_closed|nrt_uninitialized"
        "|nrt_load_not",
        r"\bNRT_(?:TIMEOUT|EXEC_(?!TIMEOUT)\w{3,40}|FAILURE|HW_ERROR\w{0,40}|INVALID\w{0,20}|QUEUE_FULL|CLOSED|UNINITIALIZED"
        r"|LOAD_NOT\w{1,20})(?![\w=])",
    ),
    rule(
        _K.ERROR,
        "cuda_error_",
        r"\bCUDA_ERROR_(?:ILLEGAL_\w{3,20}|LAUNCH_\w{3,20}|ECC_\w{3,20}|MISALIGNED_ADDRESS|ASSERT|HARDWARE_STACK_ERROR"
        r"|INVALID_PC|INVALID_ADDRESS_SPACE): ",
    ),
    # XLA's processes wait for one another, and are stopped when one of them dies.
    rule(_K.NCCL_TIMEOUT, "barrier timed out", r"\bBarrier timed out\b"),
    rule(
        _K.ERROR,
        "terminating process because|coordination service",
        r"\bTerminating process because\b|\berror from (?:the )?coordination service\b"
        r"|\bcoordination service\b.{0,80}\b(?:error|unavailable|heartbeat|dead)\b",
        unless=r"\bI\d{4} \d\d:|\bINFO\b",
    ),
)
