"""Whether the job lives: its last words, its silence, its process; the scheduler's word is in `slurm`."""
