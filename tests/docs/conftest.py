"""The laptop that commands of the pages are run on."""

from tests.examples.laptop import laptop

__all__ = ["laptop"]
