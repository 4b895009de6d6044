"""What a site decides of an installation: names, places and sizes."""

from __future__ import annotations

import re

import msgspec

from jobman.engines.kubernetes.errors import ConfigError
from jobman.engines.kubernetes.names import dns_label, is_object_name
from jobman.engines.kubernetes.quantities import parse_quantity
from jobman.version import __version__

PORT = 7070
SERVER = "jobman"
"""The name of the service account, the Deployment, the Service and the Lease."""
KEEPER = "jobman-tasks"
"""The name of the service account, the Deployments and the Services of short tasks."""
LABELS = {"app.kubernetes.io/name": "jobman", "app.kubernetes.io/component": "server"}
DATABASE_KEY = "url"
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._/:@-]{0,500}")


class Storage(msgspec.Struct, frozen=True):
    """A volume for what jobs wrote: how much, and of which class."""

    size: str
    kind: str = ""
    """The cluster's own choice where it is empty."""


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """The part for short tasks: a broker, and who keeps workers for it."""

    namespace: str = "jobman-tasks"
    """Where workers run."""
    secret: str = "jobman-tasks"
    """The Secret with the settings of the broker, and the token of an operator."""
    tls_secret: str = "jobman-tasks-tls"
    agent_secret: str = "jobman-agent"
    """The Secret with the token of agents, in the namespace of workers."""
    prometheus: str = ""
    """Where KEDA asks for metrics."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """An installation."""

    namespace: str = "jobman"
    jobs_namespace: str = "jobman-jobs"
    image: str = f"jobman:{__version__}"
    replicas: int = 2
    database_secret: str = "jobman-database"
    tls_secret: str | None = "jobman-tls"
    """None for a server that speaks without TLS."""
    storage: Storage | None = None
    settings: str = ""
    """The settings of the server, as a file has them."""
    tasks: Tasks | None = None

    @property
    def cluster_name(self) -> str:
        """Of what belongs to no namespace; two installations in one cluster do not share it."""
        return SERVER if self.namespace == SERVER else dns_label(f"{SERVER}-{self.namespace}")

    @property
    def address(self) -> str:
        """Where the service is found inside the cluster."""
        scheme = "http" if self.tls_secret is None else "https"
        return f"{scheme}://{SERVER}.{self.namespace}.svc:{PORT}"

    def check(self) -> None:
        """Raises ConfigError where it cannot be installed like this."""
        places = [("--namespace", self.namespace), ("--jobs-namespace", self.jobs_namespace)]
        if self.tasks is not None:
            places.append(("--tasks-namespace", self.tasks.namespace))
        for option, name in places:
            if not _NAMESPACE.fullmatch(name):
                raise ConfigError(f"{option}: '{name}' is no name of a namespace.")
        if self.namespace == self.jobs_namespace:
            raise ConfigError(
                "The server and the jobs cannot share a namespace: jobs could read its Secrets.",
                "Name two with --namespace and --jobs-namespace.",
            )
        if self.tasks is not None and self.tasks.namespace in (self.namespace, self.jobs_namespace):
            raise ConfigError(
                "Workers of short tasks have a namespace to themselves: others could read their token.",
                "Name another with --tasks-namespace.",
            )
        for option, secret in (
            ("--database-secret", self.database_secret),
            ("--tls-secret", self.tls_secret),
        ):
            if secret is not None and not is_object_name(secret):
                raise ConfigError(f"{option}: '{secret}' is no name of a Secret.")
        if not _IMAGE.fullmatch(self.image):
            raise ConfigError(f"--image: '{self.image}' is no name of an image.")
        if not 1 <= self.replicas <= 9:
            raise ConfigError("--replicas: one leads and the others stand by; say 1 to 9.")


def parse_storage(text: str) -> Storage:
    """`SIZE` or `CLASS/SIZE`; raises ConfigError."""
    kind, _, size = text.rpartition("/")
    if kind and not is_object_name(kind):
        raise ConfigError(f"--storage: '{kind}' is no name of a storage class.")
    try:
        is_enough = parse_quantity(size) > 0
    except ValueError:
        is_enough = False
    if not is_enough:
        raise ConfigError(f"--storage: '{size}' is no size.", "Write 50Gi, or CLASS/50Gi.")
    return Storage(size, kind)
