"""Simulated runs that write real log files: a model of training, its faults, and the styles of trainers."""
