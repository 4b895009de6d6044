"""Flux: scripts for its jobs, its commands, and what they say. Nobody here speaks to it in other ways."""
