"""Pure scheduling: what nodes have free, and where a shape goes.

Takes and returns plain values. No I/O, no clock and no randomness may enter: the same questions in the same
order get the same answers. Knows nothing of SQL, processes or engines.
"""
