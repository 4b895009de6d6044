"""What commands speak with: a service over plain sockets, or a cluster and registries by themselves.

The client of a service is quick to import: no HTTP library, nothing of the engines or the scheduler. What
asks a cluster (`direct`, `driving`) or registries (`images`) is imported by whoever needs it. Nothing prints.
"""

from jobman.client.client import Client
from jobman.client.failures import Refused, Unreachable

__all__ = ["Client", "Refused", "Unreachable"]
