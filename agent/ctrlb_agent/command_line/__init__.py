"""`ctrlb` for scripts and people."""
