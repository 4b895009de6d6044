"""jobman: one job language, one command, any cluster."""
