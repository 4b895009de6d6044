"""The document as written: source and positions, kinds and records, rules, resolution, JSON schema.

Knows nothing of engines, of clocks, or of files other than the document.
"""
