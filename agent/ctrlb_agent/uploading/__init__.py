"""Rows on their way to the server: what is new, what is sent, what waits."""
