"""Deaths as shells, launchers and kernels report them, and exceptions without a traceback.

Each row: a name, the log or the files of the run, the state, and words of the root error (None: there is none, "*": any, an outlived one too).
"""
# ruff: noqa: E501

from __future__ import annotations

from tests.monitor.deaths.shapes import deepspeed, hf, megatron, nano, plain, tb, titan, torchrun

Files = dict[str, str]
Row = tuple[str, str | Files, str, str | None]

# fmt: off
ROWS: list[Row] = [
    # shapes of exits
    ("seg-bash", hf() + "run.sh: line 12: 12345 Segmentation fault      (core dumped) python train.py --lr 1e-4\n", "crashed", "Segmentation fault"),
    ("seg-srun", megatron() + "srun: error: n3: task 5: Segmentation fault (core dumped)\nsrun: Terminating StepId=77.0\nslurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-05-03T02:13:00 ***\nsrun: error: n1: tasks 0-3: Terminated\n", "crashed", "Segmentation fault"),
    ("seg-torchrun", hf() + torchrun(3, -11, cause_tb="Signal 11 (SIGSEGV) received by PID 4243"), "crashed", "Signal 11 (SIGSEGV)"),
    ("seg-mpirun", megatron() + "[n3:12345] *** Process received signal ***\n[n3:12345] Signal: Segmentation fault (11)\n[n3:12345] Signal code: Address not mapped (1)\n[n3:12345] *** End of error message ***\n--------------------------------------------------------------------------\nmpirun noticed that process rank 3 with PID 12345 on node n3 exited on signal 11 (Segmentation fault).\n", "crashed", "Segmentation fault"),
    ("seg-hydra", megatron() + "===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 12345 RUNNING AT n3\n=   EXIT CODE: 139\n=   CLEANING UP REMAINING PROCESSES\n===================================================================================\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n", "crashed", "Segmentation fault"),
    ("mpi-abort", megatron() + "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n", "crashed", None),
    ("mpi-exit1", megatron() + "--------------------------------------------------------------------------\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted.\n--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[1234,1],3]\n  Exit code:    1\n", "crashed", None),
    ("mpi-cause", megatron() + tb("ValueError: shard 12 is truncated") + "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n", "crashed", "shard 12"),
    ("bus-loader", hf() + "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n" + tb("RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."), "crashed", "us error"),
    ("bus-shell", plain() + "Bus error (core dumped)\n", "crashed", "Bus error"),
    ("sigill-shell", plain() + "run.sh: line 3: 4242 Illegal instruction     (core dumped) python train.py\n", "crashed", "Illegal instruction"),
    ("sigill-srun", plain() + "srun: error: n3: task 5: Illegal instruction (core dumped)\n", "crashed", "Illegal instruction"),
    ("sigfpe-torchrun", hf() + torchrun(1, -8, cause_tb="Signal 8 (SIGFPE) received by PID 4243"), "crashed", "SIGFPE"),
    ("killed-bare", nano() + "Killed\n", "crashed", "Killed"),
    ("killed-torchrun", hf() + torchrun(1, -9, cause_tb="Signal 9 (SIGKILL) received by PID 4243"), "crashed", "SIGKILL"),
    ("killed-srun", hf() + "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory\n", "oom", "oom_kill"),
    ("oom-srun-old", hf() + "slurmstepd: error: Detected 1 oom-kill event(s) in step 77.batch cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.\n", "oom", "oom-kill"),
    ("oom-srun-only", hf() + "srun: error: n1: task 0: Out Of Memory\n", "oom", "Out Of Memory"),
    ("oom-kernel", hf() + "[1234.5] Memory cgroup out of memory: Killed process 4242 (python) total-vm:93483728kB, anon-rss:33441212kB\n", "oom", "Killed process"),
    ("oom-kernel2", hf() + "[1234.5] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0-1,oom_memcg=/slurm/uid_1/job_2,task_memcg=/slurm,task=python,pid=4242,uid=1000\n", "oom", "oom-kill"),
    ("seg-kernel", hf() + "[1234.5] python[4242]: segfault at 0 ip 00007f1b sp 00007ffc error 4 in libtorch_cuda.so[7f1b00000000+2000]\n", "crashed", "segfault at 0"),
    ("docker-137", hf() + "trainer-1 exited with code 137\n", "crashed", "SIGKILL"),
    ("sig-exit", hf() + "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)\n", "crashed", "SIGSEGV"),
    ("accelerate-exit", hf() + "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' died with <Signals.SIGSEGV: 11>.\n", "crashed", "SIGSEGV"),
    ("ds-launch", deepspeed() + "[2026-05-03 02:13:00,276] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 4243\n[2026-05-03 02:13:00,277] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', 'train.py'] exits with return code = -11\n", "crashed", "*"),
    ("ds-launch-1", deepspeed() + "[2026-05-03 02:13:00,277] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', 'train.py'] exits with return code = 1\n", "crashed", None),
    # no traceback
    ("bare-value", plain() + "ValueError: shard 12 is truncated\n", "crashed", "ValueError: shard 12"),
    ("bare-assert", titan() + "AssertionError\n", "crashed", "AssertionError"),
    ("bare-rank", titan(pre="[rank1]:") + "[rank1]: KeyError: 'input_ids'\n", "crashed", "KeyError: 'input_ids'"),
    ("bare-srun", megatron(pre="3: ") + "3: RuntimeError: The size of tensor a (4096) must match the size of tensor b (2048) at non-singleton dimension 1\n", "crashed", "The size of tensor a"),
    ("bare-logger", nano(pre="2026-05-03 02:03:00,104 - __main__ - INFO - ") + "2026-05-03 02:13:00,104 - __main__ - ERROR - RuntimeError: shape mismatch\n", "crashed", "shape mismatch"),
    ("bare-brackets", plain(pre="[2026-05-03 02:03:00] [INFO] ") + "[2026-05-03 02:13:00] [ERROR] ValueError: bad token id 50258\n", "crashed", "bad token id"),
    ("bare-loguru", plain(pre="2026-05-03 02:03:00.104 | INFO     | __main__:train:123 - ") + "2026-05-03 02:13:00.104 | ERROR    | __main__:main:12 - IndexError: list index out of range\n", "crashed", "IndexError"),
    ("bare-dist", titan() + "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.27.5\n", "crashed", "DistBackendError"),
    ("bare-ray", plain() + "(WorkerDict pid=4242) ValueError: prompt too long\n", "crashed", "prompt too long"),
    ("bare-custom", plain() + "mylib.errors.CheckpointCorruptedException: header of part 3 is wrong\n", "crashed", "CheckpointCorruptedException"),
    ("bare-omega", plain() + "Error executing job with overrides: ['trainer.max_steps=100']\nomegaconf.errors.ConfigAttributeError: Key 'foo' is not in struct\n    full_key: model.foo\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n", "crashed", "ConfigAttributeError"),
    ("bare-argparse", "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr 0.1\n", "crashed", "unrecognized arguments"),
    ("bare-failed", plain() + "2026-05-03 02:13:00 ERROR Training failed: expected scalar type Half but found Float\n", "crashed", "Training failed"),
    ("bare-notfound", "bash: torchrun: command not found\n", "crashed", "command not found"),
    ("bare-nofile", "python: can't open file '/w/train.py': [Errno 2] No such file or directory\n", "crashed", "can't open file"),
]
