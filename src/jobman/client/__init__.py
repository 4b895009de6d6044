"""The light client of the service: plain sockets and typed answers, quick to import.

Nothing heavy enters here: no HTTP library, no printing, nothing of the engines or the scheduler.
"""

from jobman.client.client import Client
from jobman.client.failures import Refused, Unreachable

__all__ = ["Client", "Refused", "Unreachable"]
