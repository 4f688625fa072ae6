"""A session's run and agent, and the hooks at its start and its end."""
