"""The engine of this machine: a launcher, a shim beside every copy, and files that are the truth about it.

Survives the death of the service and of each of its own processes. Knows nothing of scheduling, SQL or the
command line; what the launcher imports stays light, because every shim is a fork of it.
"""
