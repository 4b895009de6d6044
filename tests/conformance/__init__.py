"""The conformance suite: scenarios written once, the same outcome expected of every engine.

A scenario is a document and what its author sees. Nothing of how an engine works inside may enter: what an
engine needs to be spoken to is in `engines.py`, and in the file of that engine.
"""
