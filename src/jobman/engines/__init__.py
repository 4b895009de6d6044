"""Where copies run: one folder per engine, all with the same file names, behind the protocols of `base`.

An engine knows plans and its own machines, nothing of the service that uses it, and nothing of other engines.
"""
