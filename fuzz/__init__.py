"""A search for documents that break the reader, the resolver or the planner. Standard library only."""
