"""The laptop that examples run on."""

from tests.examples.laptop import laptop

__all__ = ["laptop"]
