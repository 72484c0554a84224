"""Deaths by accelerators of every make, and by their run-times.

Each row: a name, the log or the files of the run, the state, and words of the root error (None: there is none, "*": any, an outlived one too).
"""
# ruff: noqa: E501

from __future__ import annotations

from tests.monitor.deaths.shapes import hf, maxtext, megatron, nano, plain, tb, titan, torchrun

Files = dict[str, str]
Row = tuple[str, str | Files, str, str | None]

# fmt: off
ROWS: list[Row] = [
    # AMD
    ("hip-oom-tb", titan() + tb("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 191.98 GiB of which 1.2 GiB is free.", "[rank0]: "), "oom", "HIP out of memory"),
    ("hip-oom-bare", megatron() + "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB (GPU 3; 63.98 GiB total capacity)\n", "oom", "HIP out of memory"),
    ("hip-error", hf() + "RuntimeError: HIP error: an illegal memory access was encountered\nHIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing AMD_SERIALIZE_KERNEL=3.\n", "crashed", "HIP error: an illegal"),
    ("amd-fault", titan() + "Memory access fault by GPU node-2 (Agent handle: 0x55d7c8a0) on address 0x7f0a1c000000. Reason: Page not present or supervisor privilege.\nGPU core dump failed\nAborted (core dumped)\n", "crashed", "Memory access fault by GPU node-2"),
    ("amd-aperture", megatron() + ":0:rocdevice.cpp            :2990: 1234567890123 us: 12345: [tid:0x7f12a0bff640] Callback: Queue 0x7f1210400000 aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address. code: 0x29\n", "crashed", "HSA_STATUS_ERROR_MEMORY_APERTURE"),
    ("amd-hsail", hf() + ":0:rocdevice.cpp            :2786: 25012345678 us: [pid:4242  tid:0x7f1] Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016\nAborted (core dumped)\n", "crashed", "HSA_STATUS_ERROR_EXCEPTION"),
    ("amd-hsa-resources", hf() + ":0:rocdevice.cpp            :2660: 25012345678 us: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. This error may also occur when the core runtime library needs to spawn threads or create internal OS-specific events. Available Free mem : 0 MB code: 0x1008\n", "oom", "OUT_OF_RESOURCES"),
    ("amd-hw-exception", megatron() + "HW Exception by GPU node-1 (Agent handle: 0x7b3e0c0) reason :GPU Hang\nAborted (core dumped)\n", "crashed", "HW Exception by GPU node-1"),
    ("amd-kernel-ring", plain() + "[88123.456789] amdgpu 0000:c1:00.0: amdgpu: ring sdma0 timeout, signaled seq=1203, emitted seq=1205\n[88124.0] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n", "crashed", "ring sdma0 timeout"),
    ("amd-kernel-ras", plain() + "May 03 02:03:00 n1 kernel: amdgpu 0000:c1:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n", "crashed", "uncorrectable hardware error"),
    ("amd-kernel-pagefault", plain() + "[88123.4] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32770)\n", "crashed", "page fault"),
    ("hip-nobinary", "Loading model\nhipErrorNoBinaryForGpu: Unable to find code object for all current devices!\nAborted (core dumped)\n", "crashed", "hipErrorNoBinaryForGpu"),
    ("hip-launch", nano() + tb("RuntimeError: hipErrorLaunchFailure: unspecified launch failure"), "crashed", "hipErrorLaunchFailure"),
    ("hip-cpp", nano() + "terminate called after throwing an instance of 'c10::HIPError'\n  what():  HIP error: hipErrorOutOfMemory\nAborted (core dumped)\n", "oom", "hipErrorOutOfMemory"),
    ("rccl-watchdog", megatron(pre="[rank3]:") + "[rank3]:[E503 02:13:00.123456789 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n[rank3]:[E503 02:13:00.2 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0 Rank 3] Process group watchdog thread terminated with exception: [Rank 3] Watchdog caught collective operation timeout\n", "crashed", "Watchdog caught collective"),
    ("rccl-error", megatron() + "[rank5]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for details), RCCL version 2.18.3\n", "crashed", "DistBackendError"),
    ("hipblas", hf() + "RuntimeError: CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasGemmEx(handle, opa, opb)`\n", "crashed", "HIPBLAS_STATUS_INTERNAL_ERROR"),
    ("rocblas", plain() + "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1031\nAborted (core dumped)\n", "crashed", "rocBLAS error"),
    ("miopen", plain() + "MIOpen Error: /long_pathname_so_that_rpms_can_package_the_debug_info/src/MLOpen/src/hipoc/hipoc_program.cpp:304: Code object build failed. Source: naive_conv.cpp\n" + tb("RuntimeError: miopenStatusUnknownError"), "crashed", "miopenStatusUnknownError"),
    # Ascend
    ("npu-oom", megatron() + tb("RuntimeError: NPU out of memory. Tried to allocate 1.20 GiB (NPU 0; 60.97 GiB total capacity; 58.1 GiB already allocated)", "[rank0]: "), "oom", "NPU out of memory"),
    ("npu-oom-bare", megatron() + "[rank2]: torch_npu.npu.OutOfMemoryError: NPU out of memory. Tried to allocate 1.20 GiB\n", "oom", "NPU out of memory"),
    ("ei0002", megatron() + "EI0002: [PID: 12345] 2026-05-03-02:13:00.123.456 The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank [5].base information: [streamID:[9], taskID[35]]\n        Possible Cause: 1. An exception occurs during the execution on some NPUs in the cluster.\n", "crashed", "EI0002"),
    ("ee9999", megatron() + tb("RuntimeError: ACL stream synchronize failed, error code:507015\nEE9999: Inner Error!\nEE9999: [PID: 3020] 2026-05-03-02:13:00.551.001 Task execute failed, device_id=0, stream_id=2, task_id=35"), "crashed", "ACL stream synchronize failed"),
    ("ee9999-bare", megatron() + "EE9999: Inner Error!\nEE9999: [PID: 3020] 2026-05-03-02:13:00.551.001 The error from device(chipId:0, dieId:0), serial number is 3, there is an aivec error exception, core id is 0\n        TraceBack (most recent call last):\n        Aicore kernel execute failed, device_id=0\n", "crashed", "EE9999"),
    ("el0004", megatron() + "EL0004: [PID: 3020] 2026-05-03-02:13:00.551.001 Failed to allocate memory.\n        Possible Cause: Available memory is insufficient.\n", "oom", "EL0004"),
    ("ej0001", "setting up\nEJ0001: [PID: 77] 2026-05-03-02:13:00.551.001 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.\n", "crashed", "EJ0001"),
    ("hccl-watchdog", megatron() + "[E compiler_depend.ts:475] [Rank 3] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out.\n", "crashed", "WorkHCCL"),
    ("hccl-timeout", megatron() + tb("RuntimeError: [ERROR] 2026-05-03-02:13:00 (PID:1234, Device:3, RankID:3) ERR02200 DIST call hccl api failed."), "crashed", "ERR02200"),
    ("npu-err-plain", megatron() + "[ERROR] 2026-05-03-02:13:00 (PID:1234, Device:0, RankID:0) ERR00100 PTA call acl api failed.\n", "crashed", "ERR00100"),
    ("npu-child", megatron() + "EI0006: [PID: 4] 2026-05-03-02:13:00.551.001 Getting socket times out. Reason: 1. The remote does not initiate a connect request.\n" + torchrun(3), "crashed", "EI0006"),
    ("mindspore", "epoch: 1 step: 10, loss is 6.9\nepoch: 1 step: 20, loss is 6.7\n[ERROR] DEVICE(2345,ffff1234,python):2026-05-03-02:13:00.123.456 [mindspore/ccsrc/runtime/device/ascend_kernel_runtime.cc:712] SyncStream] Call runtime rtStreamSynchronize failed, op name: Default/AllReduce\n" + tb("RuntimeError: Call runtime rtStreamSynchronize failed. Op name: Default/AllReduce"), "crashed", "rtStreamSynchronize failed"),
    # Intel
    ("xpu-oom", hf() + "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 48.00 GiB.\n", "oom", "XPU out of memory"),
    ("xpu-lost", hf() + tb("RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"), "crashed", "DEVICE_LOST"),
    ("xpu-oom-ur", hf() + tb("RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"), "oom", "OUT_OF_DEVICE_MEMORY"),
    ("xpu-native", hf() + "RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES) -5 (PI_ERROR_OUT_OF_RESOURCES)\n", "oom", "Native API failed"),
    ("xpu-i915", plain() + "[ 812.3] i915 0000:03:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python [4242]\n", "crashed", "GPU HANG"),
    ("xpu-abort", plain() + "terminate called after throwing an instance of 'sycl::_V1::exception'\n  what():  level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)\nAborted (core dumped)\n", "crashed", "DEVICE_LOST"),
    ("gaudi-devmem", hf() + tb("RuntimeError: [Rank:3] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::939524096 (896)MB"), "oom", "PT_DEVMEM Allocation failed"),
    ("gaudi-compile", hf() + tb("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread...\nGraph compile failed. synStatus=synStatus 26 [Generic failure]."), "crashed", "PT_BRIDGE"),
    ("gaudi-acquire", "loading\n" + "RuntimeError: synStatus=8 [Device not found] Device acquire failed.\n", "crashed", "Device acquire failed"),
    ("gaudi-dfa", hf() + "[02:13:00.123456][SYN_API         ][critical][tid:1A2B] Synapse detected a device critical error that requires a device reset\n[02:13:00.2][DFA][error] synapse runtime: device failure analysis\nAborted (core dumped)\n", "crashed", "device critical error"),
    ("gaudi-kernel", hf() + "[ 9123.1] habanalabs hl0: device is stuck after TDR, going to reset device\n", "crashed", "habanalabs"),
    # Neuron
    ("nrt-timeout", hf() + "2026-May-03 02:13:00.123456  4242:4300  ERROR   NRT:nrt_execute_repeat                       Execution failed: status=NRT_TIMEOUT (5)\n", "crashed", "NRT_TIMEOUT"),
    ("nrt-unit", hf() + tb("RuntimeError: Bad StatusOr access: INTERNAL: RunNeuronOp: error condition NRT_EXEC_UNIT_UNRECOVERABLE: nrt_execute status=101"), "crashed", "NRT_EXEC_UNIT_UNRECOVERABLE"),
    ("nrt-oom", hf() + tb("RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: LoadCollectives: error condition NRT_RESOURCE: size: 104"), "oom", "NRT_RESOURCE"),
    ("nrt-alloc", hf() + "2026-May-03 02:13:00.123456  4242:4300  ERROR  TDRV:dmem_alloc_internal                     Failed to alloc DEVICE memory: 1073741824\n2026-May-03 02:13:00.2  4242:4300  ERROR   NRT:nrt_load Failed to load NEFF: status=NRT_RESOURCE (4)\n", "oom", "Failed to alloc DEVICE memory"),
    ("nrt-num", hf() + "[rank3]: RuntimeError: Failed to execute: NRT_EXEC_COMPLETED_WITH_NUM_ERR (1003)\n", "crashed", "NUM_ERR"),
    # TPU / JAX
    ("jax-oom", maxtext() + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.\n", "oom", "RESOURCE_EXHAUSTED"),
    ("jax-hbm", maxtext() + tb("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.12G of 15.75G hbm. Exceeded hbm capacity by 4.37G."), "oom", "RESOURCE_EXHAUSTED"),
    ("jax-hbm-load", maxtext() + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error loading program: Attempting to reserve 9.42G at the bottom of memory. That was not possible. There are 8.19G free, 0B reserved, and 8.19G reservable.\n", "oom", "RESOURCE_EXHAUSTED"),
    ("jax-barrier", "I0503 02:03:00.123456 1234 coordinator.py:12] starting\njaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0. This usually happens because a task triggered the barrier unexpectedly early\n", "crashed", "Barrier timed out"),
    ("jax-coord", maxtext() + "F0503 02:13:00.123456    1234 client.h:77] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output.\n", "crashed", "Terminating process because"),
    ("jax-coord-tf", maxtext() + "2026-05-03 02:13:00.123456: E external/xla/xla/tsl/distributed_runtime/coordination/coordination_service_agent.cc:353] Polled an error from coordination service (this can be an error from this or another task).\n2026-05-03 02:13:00.123460: F external/xla/xla/pjrt/distributed/client.h:80] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details.\n", "crashed", "coordination service"),
    ("jax-coord-sibling", {"rank0.log": maxtext(), "rank1.log": maxtext() + tb("ValueError: shard 7 is truncated")} | {"rank0.log": maxtext() + "F0503 02:13:00.123456    1234 client.h:77] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details.\n"}, "crashed", "shard 7 is truncated"),
    ("glog-fatal", maxtext() + "F0503 02:13:00.123456    1234 pjrt_stream_executor_client.cc:2985] Check failed: status.ok() INTERNAL: could not launch\n*** Check failure stack trace: ***\n    @     0x7f12  (unknown)\n", "crashed", "Check failed: status.ok()"),
    ("glog-fatal-tf", maxtext() + "2026-05-03 02:13:00.123456: F external/xla/xla/service/gpu/nccl_utils.cc:12] Check failed: comm != nullptr\n", "crashed", "Check failed: comm"),
    ("jax-cuda", maxtext() + "2026-05-03 02:13:00.123456: E external/xla/xla/stream_executor/cuda/cuda_driver.cc:1234] failed to synchronize: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n", "crashed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("jax-cuda-oom", maxtext() + "2026-05-03 02:13:00.123456: E external/xla/xla/stream_executor/cuda/cuda_driver.cc:796] failed to alloc 17179869184 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n", "oom", "CUDA_ERROR_OUT_OF_MEMORY"),
    ("tpu-sigterm", maxtext() + "*** SIGTERM received by PID 1234 (TID 1234) on cpu 5 from PID 1; stack trace: ***\nPC: @     0x7f1  (unknown)\n", "cancelled", "SIGTERM received"),
    ("tpu-inuse", "starting\njaxlib.xla_extension.XlaRuntimeError: ABORTED: The TPU is already in use by process with pid 4242. Not attempting to load libtpu.so in this process.\n", "crashed", "already in use"),
    ("tpu-maint", maxtext() + "I0503 02:13:00.1 1234 x.py:3] The VM is being preempted, saving\n", "preempted", "preempted"),
    # CUDA
    ("cuda-oom-tb", hf() + tb("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"), "oom", "CUDA out of memory"),
    ("cuda-oom-bare", hf() + "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.15 GiB total capacity)\n", "oom", "CUDA out of memory"),
    ("cuda-illegal", hf() + "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n", "crashed", "illegal memory access"),
    ("cuda-nvlink", plain() + "[88.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.\n" + "Killed\n", "crashed", "Xid"),
    ("xid-assert", hf() + tb("RuntimeError: CUDA error: device-side assert triggered") + torchrun(), "crashed", "device-side assert"),
]
