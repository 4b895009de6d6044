"""The laptop that scripts run on."""

from tests.examples.laptop import laptop

__all__ = ["laptop"]
