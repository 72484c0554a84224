"""What Slurm says of a run's job: asked with squeue and sacct, once a minute for all runs together."""
