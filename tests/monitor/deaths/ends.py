"""What is no death, whose failure was first, and ends that somebody or something brought about.

Each row: a name, the log or the files of the run, the state, and words of the root error (None: there is none, "*": any, an outlived one too).
"""
# ruff: noqa: E501

from __future__ import annotations

from tests.monitor.deaths.shapes import hf, maxtext, megatron, plain, tb, titan, torchrun

Files = dict[str, str]
Row = tuple[str, str | Files, str, str | None]

DONE = "Training completed. Total time 1:02:03\n"
REAL = tb("ValueError: shard 12 is truncated", "[rank3]: ")

# fmt: off
ROWS: list[Row] = [
    # no deaths
    ("cfg-oom", "config:\n  retry_on: OutOfMemoryError\n  catch: ['OutOfMemoryError', 'RuntimeError']\n" + plain() + DONE, "finished", None),
    ("cfg-oom-norec", "config:\nretry_on: torch.cuda.OutOfMemoryError\nexceptions=[\"OutOfMemoryError\", \"ValueError\"]\n  oom_policy ........ OutOfMemoryError\n", "starting", None),
    ("cfg-oom-map", "error_policy:\n  OutOfMemoryError: skip_batch\n  RuntimeError: raise\nflags: {OutOfMemoryError: retry, 'KeyError': 'raise'}\n" + plain(), "running", None),
    ("cfg-oom-mid", plain(3) + "settings: on_error=OutOfMemoryError action=halve\n" , "running", None),
    ("tip-oom", "Tip: if you run into CUDA out of memory, lower --batch-size\nNote: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid CUDA out of memory errors\n" + plain() , "running", None),
    ("oom-flag", "docker run --oom-kill-disable=false --shm-size 64g img\n" + plain(), "running", None),
    ("caught-warn", plain(3) + "WARNING:data:retrying shard 12 after an error\n" + tb("OSError: connection lost") + plain(6), "running", None),
    ("caught-warn-end", plain(3) + "WARNING:data:retrying shard 12 after an error\n" + tb("OSError: connection lost") , "running", None),
    ("caught-warn-pre", plain(3) + tb("OSError: connection lost", "W0503 02:13:00.123000 4242 data.py:12] ") + plain(6), "running", None),
    ("caught-warn-named", plain(3) + "2026-05-03 02:13:00,104 - data - WARNING - ValueError: row 7 is broken, skipped\n" + plain(6), "running", None),
    ("caught-warn-named-end", plain(3) + "2026-05-03 02:13:00,104 - data - WARNING - ValueError: row 7 is broken\n", "running", None),
    ("caught-py-warn", plain(3) + "/w/x.py:12: UserWarning: RuntimeError: cannot use the kernel\n  warnings.warn(msg)\n", "running", None),
    ("retry-line", plain(3) + "requests.exceptions.ConnectionError: connection reset, retrying in 5 s (1/5)\n", "running", None),
    ("wandb-net", plain(3) + "wandb: Network error (ConnectionError), entering retry loop.\n", "running", None),
    ("wandb-err", plain(3) + "wandb: ERROR Error while calling W&B API: project not found (<Response [404]>)\n", "running", None),
    ("except-hf", "Could not load library libcudnn_cnn.so. Error: x\nImportError handling is on\n" + hf(), "running", None),
    ("metric-error", "".join(f"step {s} | loss {6 - s/100:.3f} | error: 0.5\n" for s in range(1, 7)), "running", None),
    ("hccl-info", "HCCL_CONNECT_TIMEOUT=1800 hccl watchdog enabled, timeout 1800 s\nNRT_LOG_LEVEL=ERROR\nXLA_FLAGS=--xla_x\nHSA_FORCE_FINE_GRAIN_PCIE=1\n" + megatron(), "running", None),
    ("amd-info", "[1.2] amdgpu 0000:c1:00.0: amdgpu: Fetched VBIOS from VFCT\n[1.3] amdgpu: ring gfx uses VM inv eng 0\nhipErrorNotReady is polled\n" + plain(), "running", None),
    ("nccl-warn-timeout", "NCCL timeout is set to 600 s\nTORCH_NCCL_ASYNC_ERROR_HANDLING=1\nwatchdog timeout 600000 ms\n" + plain(), "running", None),
    ("glog-info", "I0503 02:03:00.1 12 x.cc:3] fine\nE0503 02:03:00.1 12 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n" + maxtext() , "running", None),
    ("skip-oom", plain(3) + "| WARNING: ran out of memory, retrying batch\nCUDA out of memory, skipping batch 12\n" + plain(6) , "running", None),
    ("oom-autobatch", "find_batch_size: CUDA out of memory with batch size 64, trying 32\n" + plain(6), "running", None),
    # teardown never the root
    ("td-torchrun", titan() + REAL + "W0503 02:08:59.1 4100 api.py:900] Sending process 4244 closing signal SIGTERM\n" + torchrun(3), "crashed", "shard 12"),
    ("td-nccl-before", {"rank0.log": titan() + "[rank0]:[E503 02:13:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77)\n", "rank1.log": titan(pre="[rank1]:") + tb("ValueError: shard 12 is truncated", "[rank1]: ")}, "crashed", "shard 12"),
    ("td-nccl-bare-sib", {"rank0.log": titan() + "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.\n", "rank1.log": titan(pre="[rank1]:") + "[rank1]: ValueError: shard 12 is truncated\n"}, "crashed", "shard 12"),
    ("td-brokenpipe", plain() + "ValueError: shard 12 is truncated\nBrokenPipeError: [Errno 32] Broken pipe\n", "crashed", "shard 12"),
    ("td-brokenpipe-only", plain() + "Exception ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>\nBrokenPipeError: [Errno 32] Broken pipe\n", "running", None),
    ("td-loader", hf() + tb("RuntimeError: DataLoader worker (pid(s) 4242, 4243) exited unexpectedly"), "crashed", "DataLoader worker"),
    ("td-loader-cause", hf() + tb("MemoryError") + tb("RuntimeError: DataLoader worker (pid(s) 4242, 4243) exited unexpectedly"), "oom", "MemoryError"),
    ("td-loader-killed", hf() + "[1.2] Out of memory: Killed process 4242 (pt_data_worker) total-vm:1kB\n" + tb("RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed."), "oom", "Killed process"),
    ("td-loader-then", {"rank0.log": hf() + tb("RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly"), "rank1.log": hf() + tb("OSError: [Errno 5] Input/output error: '/data/shard7'")}, "crashed", "Input/output error"),
    ("td-semaphore", plain() + "ValueError: shard 12 is truncated\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 8 leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n", "crashed", "shard 12"),
    ("td-semaphore-only", plain() + "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 8 leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n", "running", None),
    ("td-srun", megatron() + "ValueError: shard 12 is truncated\nsrun: error: n3: task 5: Exited with exit code 1\nsrun: Terminating StepId=77.0\nslurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-05-03T02:13:00 ***\n", "crashed", "shard 12"),
    ("td-srun-first", megatron() + "srun: error: n3: task 5: Exited with exit code 1\nsrun: Terminating StepId=77.0\n" + tb("ValueError: shard 12 is truncated", "5: "), "crashed", "shard 12"),
    ("td-srun-only", megatron() + "srun: error: n3: task 5: Exited with exit code 1\nslurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-05-03T02:13:00 ***\n", "crashed", None),
    ("td-terminated", plain() + "ValueError: shard 12 is truncated\nTerminated\n", "crashed", "shard 12"),
    ("td-destroy", plain() + "ValueError: shard 12 is truncated\n[rank0]:[W503 02:13:00.1 ProcessGroupNCCL.cpp:1479] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.\n", "crashed", "shard 12"),
    ("td-destroy-only", plain() + DONE + "[rank0]:[W503 02:13:00.1 ProcessGroupNCCL.cpp:1479] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.\n", "finished", None),
    ("td-only-errfile", titan() + torchrun(3, 1, err="/tmp/torchelastic_x/none_y/attempt_0/3/error.json", cause_tb="Traceback (most recent call last):\n    File \"train.py\", line 9, in main\n      step()\n  ValueError: shard 12 is truncated"), "crashed", "shard 12"),
    ("td-only-table", titan() + torchrun(3, 1), "crashed", None),
    ("td-watchdogs", titan() + tb("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "[rank5]: ") + "".join(f"[rank{r}]:[E503 02:13:00.1 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77)\n" for r in (0, 1, 2)) + torchrun(5), "oom", "CUDA out of memory"),
    ("td-tcpstore", {"rank0.log": titan() + "[rank0]:[W503 02:13:00.1 TCPStore.cpp:106] recvValue failed on SocketImpl: Connection reset by peer\n[rank0]: torch.distributed.DistNetworkError: Connection closed by remote peer\n", "rank1.log": titan(pre="[rank1]:") + "[rank1]: AssertionError: loss is NaN at step 61\n"}, "crashed", "loss is NaN"),
    ("td-sigabrt", titan() + "[rank2]: ValueError: shard 12 is truncated\n" + torchrun(0, -6, cause_tb="Signal 6 (SIGABRT) received by PID 4243"), "crashed", "shard 12"),
    ("td-remote-bare", titan() + "[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error\n[rank3]: ValueError: shard 12 is truncated\n", "crashed", "shard 12"),
    # finished
    ("fin-then-crash", plain() + DONE + tb("OSError: [Errno 28] No space left on device") , "crashed", "No space left"),
    ("fin-then-bare", plain() + DONE + "RuntimeError: CUDA error: an illegal memory access was encountered\n", "crashed", "illegal memory"),
    ("fin-other-rank-died", {"rank_0.log": plain() + DONE, "rank_1.log": plain() + tb("ValueError: shard 12 is truncated")}, "crashed", "shard 12"),
    ("fin-other-rank-oom", {"rank_0.log": plain() + tb("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"), "rank_1.log": plain() + DONE}, "oom", "CUDA out of memory"),
    ("fin-other-rank-left-alone", {"rank_0.log": plain() + DONE, "rank_1.log": plain() + "torch.distributed.DistNetworkError: Connection closed by remote peer\n"}, "finished", "*"),
    ("fin-other-rank-stopped", {"rank_0.log": plain() + DONE, "rank_1.log": plain() + "Received SIGTERM: 15\n"}, "finished", None),
    ("fin-other-rank-died-before", {"rank_0.log": titan() + "[rank0]:[titan] 2026-05-03 04:03:20,104 - root - INFO - Training completed\n", "rank_1.log": titan(pre="[rank1]:") + "[rank1]:[titan] 2026-05-03 02:03:20,104 - root - ERROR - ValueError: shard 12 is truncated\n"}, "finished", "*"),
    ("fin-errors-of-before", {"train.out": plain() + DONE, "train.err": tb("ValueError: shard 12 is truncated")}, "finished", "*"),
    ("fin-words", plain() + "\x1b[32mTraining completed\x1b[0m;;\n", "finished", None),
    ("fin-words2", plain() + "[2026-05-03 02:13:00] Training completed;  \n", "finished", None),
    ("fin-total", "max_steps: 6\n" + "".join(f"step {s}/6 | loss {6 - s/100:.3f}\n" for s in range(1, 7)), "finished", None),
    ("fin-lsf", plain() + "------------------------------------------------------------\nSuccessfully completed.\n\nResource usage summary:\n", "finished", None),
    # stopped
    ("st-time", megatron() + "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-05-03T02:20:29 DUE TO TIME LIMIT ***\n", "time_limit", "*"),
    ("st-preempt", megatron() + "slurmstepd: error: *** STEP 7.0 ON n3 CANCELLED AT 2026-05-03T02:20:29 DUE TO PREEMPTION ***\n", "preempted", "*"),
    ("st-scancel", megatron() + "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-05-03T02:20:29 ***\n", "cancelled", "*"),
    ("st-node", megatron() + "srun: error: Node failure on n3\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n", "node_fail", "*"),
    ("st-requeue", megatron() + "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-05-03T02:20:29 DUE TO JOB REQUEUE ***\n", "cancelled", "*"),
    ("st-pbs-wall", megatron() + "=>> PBS: job killed: walltime 3612 exceeded limit 3600\nTerminated\n", "time_limit", "*"),
    ("st-pbs-mem", megatron() + "=>> PBS: job killed: mem 68157440kb exceeded limit 67108864kb\nTerminated\n", "oom", "exceeded limit"),
    ("st-pbs-qdel", megatron() + "=>> PBS: job killed: requested job terminate\n", "cancelled", "*"),
    ("td-github", megatron() + "2026-05-03T02:13:00.1234567Z ##[error]Process completed with exit code 1.\n", "crashed", None),
    ("td-make", megatron() + "make: *** [Makefile:12: train] Error 1\n", "crashed", None),
    ("td-go", megatron() + "error: cannot read the index of shard 12\nexit status 1\n", "crashed", "shard 12"),
    ("st-lsf-time", megatron() + "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n", "time_limit", "*"),
    ("st-lsf-mem", megatron() + "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit code 130.\n", "oom", "*"),
    ("st-lsf-owner", megatron() + "TERM_OWNER: job killed by owner.\nExited with exit code 130.\n", "cancelled", "*"),
    ("st-lsf-preempt", megatron() + "TERM_PREEMPT: job killed after preemption.\n", "preempted", "*"),
    ("st-k8s-evict", hf() + "Pod trainer-0 was Evicted: The node was low on resource: ephemeral-storage. Container trainer was using 900Gi\n", "*", "*"),
    ("st-k8s-oom", hf() + "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n", "oom", "OOMKilled"),
    ("st-k8s-preempt", hf() + "Preempted by default/high-prio-job on node n3\n", "preempted", "*"),
    ("st-evict-plain", hf() + "Reason: Evicted\n", "preempted", "Evicted"),
    ("st-sigterm-handler", plain() + "received signal 15, saving checkpoint\nSaving checkpoint at step 6\n", "cancelled", "signal 15"),
    ("st-sigterm-handler2", plain() + "Caught SIGTERM, saving and exiting gracefully\n", "cancelled", "SIGTERM"),
    ("st-sigusr1", plain() + "Caught signal SIGUSR1 on n3: this job is preempted.\n", "preempted", "preempted"),
    ("st-submitit", plain() + "submitit WARNING (2026-05-03 02:13:00,104) - Caught signal SIGUSR2 on n3: this job is timed-out.\n", "time_limit", "timed-out"),
    ("st-sigusr-generic", plain() + "[signal] SIGUSR1 received, time limit is near: checkpoint and exit\n", "time_limit", "*"),
    ("st-int", plain() + tb("KeyboardInterrupt"), "cancelled", "KeyboardInterrupt"),
    ("st-sigterm-then-save", plain() + "Received SIGTERM: 15\n" + tb("torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15"), "cancelled", "*"),
    ("st-spot", plain() + "Spot instance interruption notice received\n", "preempted", "*"),
    ("st-disconnected", plain() + "client_loop: send disconnect: Broken pipe\n", "running", None),
]
