"""Codex's config.toml: our block in it, and Codex's trust in our hooks."""
