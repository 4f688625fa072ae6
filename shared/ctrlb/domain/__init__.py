"""The rules: pure functions over rows and the present time. Standard library only, no clock, no I/O."""
