"""The resolved job as plain data: units, groups as allocations, edges, alternatives, features used.

Frozen and serialisable; knows nothing of how anything is run.
"""
