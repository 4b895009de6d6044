"""Images in registries: Harbor and every other registry that speaks the OCI distribution protocol.

Parsing is pure and stands apart; `wire.py` alone speaks HTTP, and nothing here prints. Whoever only wants
jobs does not import it, since its HTTP library is slow to start.
"""
