"""Accounting: what allocations cost, slice by slice, and whether their jobs may still run.

The meter, the prices and the permissions are pure: they take plain values and the time, and return records
and sentences. Only `paths.py` looks at files. Nothing here writes to the store or stops a job.
"""
