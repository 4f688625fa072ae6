"""The check before an edit: what it asks, what it tells, and the process that keeps its connection."""
