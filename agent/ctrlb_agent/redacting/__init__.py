"""Secrets are masked here, before anything is kept or sent."""
