"""What registries keep of an image: manifests, indexes of several platforms, and configurations.

Both families of media types are read, OCI's and Docker's version 2, which mean the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from jobman.client.images.answers import Details, Platform
from jobman.client.images.errors import RegistryError
from jobman.client.images.times import moment

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
CONFIGS = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
ACCEPTED = (*INDEXES, *MANIFESTS)
USUAL_PLATFORM = "linux/amd64"
_DESCRIPTION = "org.opencontainers.image.description"
_ROLE = "vnd.docker.reference.type"

T = TypeVar("T")


class PlatformRecord(msgspec.Struct, kw_only=True):
    """The kind of machine that an image is for."""

    os: str = ""
    architecture: str = ""
    variant: str | None = None

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))


class Descriptor(msgspec.Struct, kw_only=True, rename="camel"):
    """A thing that a registry keeps, by its digest."""

    media_type: str = ""
    digest: str = ""
    size: int = 0
    platform: PlatformRecord | None = None
    annotations: dict[str, str] | None = None


class Manifest(msgspec.Struct, kw_only=True, rename="camel"):
    """An image for one platform, or an index of several."""

    schema_version: int = 0
    media_type: str = ""
    config: Descriptor | None = None
    layers: list[Descriptor] | None = None
    manifests: list[Descriptor] | None = None
    annotations: dict[str, str] | None = None

    @property
    def is_index(self) -> bool:
        return self.media_type in INDEXES or (self.config is None and self.manifests is not None)

    @property
    def is_image(self) -> bool:
        """Whether containers can be started from it; registries keep charts and other things, too."""
        return self.is_index or (self.config is not None and self.config.media_type in CONFIGS)

    @property
    def size(self) -> int | None:
        if self.config is None or self.layers is None:
            return None
        return self.config.size + sum(layer.size for layer in self.layers)


class Runtime(msgspec.Struct, kw_only=True, rename="pascal"):
    """How a container of an image is started."""

    user: str | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    env: list[str] | None = None
    working_dir: str | None = None
    exposed_ports: dict[str, object] | None = None
    labels: dict[str, str] | None = None


class Config(msgspec.Struct, kw_only=True):
    """The configuration of an image."""

    created: str | None = None
    os: str | None = None
    architecture: str | None = None
    variant: str | None = None
    config: Runtime | None = None

    @property
    def platform(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))


def read_manifest(body: bytes, form: str = "") -> Manifest:
    """A manifest or an index; `form` is the media type that it was sent as. Raises RegistryError."""
    found = _decoded(body, Manifest)
    if not found.media_type and form in ACCEPTED:
        found.media_type = form
    if found.schema_version < 2 or (found.config is None and found.manifests is None):
        raise RegistryError(
            "it is kept in a form that was given up long ago (schema 1)",
            "push the image again with a newer tool",
        )
    return found


def read_config(body: bytes) -> Config:
    """A configuration; raises RegistryError."""
    return _decoded(body, Config)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RegistryError(f"what the registry keeps of it cannot be read: {error}") from None


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def check_digest(body: bytes, digest: str) -> None:
    """Raise where something is not what it was asked for by its digest; other algorithms are believed."""
    if digest.startswith("sha256:") and digest_of(body) != digest.lower():
        raise RegistryError(
            f"what the registry sent is damaged: it is not {digest}", "ask again, or push it anew"
        )


def platforms_of(index: Manifest) -> list[Platform]:
    """The platforms of an index, without what only tells how they were built."""
    return [
        Platform(platform=str(each.platform), digest=each.digest)
        for each in index.manifests or ()
        if each.platform is not None
        and str(each.platform).strip("/")
        and each.platform.os != "unknown"
        and _ROLE not in (each.annotations or {})
    ]


def chosen(platforms: Sequence[Platform], wanted: str | None) -> Platform | None:
    """The platform that was asked for, or the one that most clusters have, or the first."""
    for name in [wanted] if wanted is not None else [USUAL_PLATFORM]:
        for each in platforms:
            if each.platform == name or each.platform.startswith(f"{name}/"):
                return each
    return None if wanted is not None or not platforms else platforms[0]


def fill(details: Details, config: Config) -> None:
    """Write what a configuration says into the details of an image."""
    runtime = config.config or Runtime()
    details.platform = config.platform or details.platform
    details.created_at = moment(config.created)
    details.entrypoint = runtime.entrypoint or []
    details.command = runtime.cmd or []
    details.env = dict(_variable(text) for text in runtime.env or ())
    details.workdir = runtime.working_dir or ""
    details.user = runtime.user or ""
    details.ports = sorted(runtime.exposed_ports or {}, key=_port)
    details.labels = runtime.labels or {}


def description_in(*sources: dict[str, str] | None) -> str:
    """What annotations or labels say an image is for."""
    return next((source[_DESCRIPTION] for source in sources if source and source.get(_DESCRIPTION)), "")


def _variable(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _port(text: str) -> tuple[int, str]:
    number = text.partition("/")[0]
    return (int(number) if number.isdigit() and len(number) < 6 else 0, text)
