"""`ctrlb-agent` for scripts and people."""
