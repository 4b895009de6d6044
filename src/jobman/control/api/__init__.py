"""The HTTP face of the service: `/v1`, one file per resource.

Reads requests, asks the director or the store, and writes answers. No decision about a job is made here, and
nothing is written to the store but tokens.
"""
