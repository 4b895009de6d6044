"""What is told of images: the bodies of `-o json`, which stay as they are."""

from __future__ import annotations

import msgspec


class Image(msgspec.Struct, kw_only=True):
    """An image of a registry, at a glance."""

    image: str
    """As a document names it: in full, or without the settings' `image_prefix`."""
    registry: str
    repository: str
    """Its name inside the registry."""
    description: str = ""
    tags: list[str] = []
    """The newest first, as far as the registry tells; else the highest first."""
    updated_at: float | None = None
    """When the newest tag was pushed or, where the registry does not tell, built; in seconds since 1970."""
    size: int | None = None
    """Of the newest tag, in bytes, as it is stored."""


class Failed(msgspec.Struct, kw_only=True):
    """A registry that gave no answer, or not a whole one."""

    registry: str
    code: str
    message: str
    advice: str = ""
    exit: int = 4
    """The exit code that it is worth; 0 where all images are there, and some could not be looked into."""


class Images(msgspec.Struct, kw_only=True):
    """All images that were found."""

    items: list[Image] = []
    failures: list[Failed] = []


class Platform(msgspec.Struct, kw_only=True, frozen=True):
    """An image for one kind of machine."""

    platform: str
    """`linux/amd64`, `linux/arm64/v8`."""
    digest: str
    size: int | None = None


class Vulnerabilities(msgspec.Struct, kw_only=True):
    """What a scanner found."""

    status: str
    """`Success` where it came to an end."""
    severity: str = ""
    total: int = 0
    fixable: int = 0
    counts: dict[str, int] = {}
    """By severity, the worst first."""
    scanner: str = ""
    scanned_at: float | None = None


class Details(msgspec.Struct, kw_only=True):
    """All that is known of an image under one tag or digest."""

    image: str
    registry: str
    repository: str
    description: str = ""
    tags: list[str] = []
    """All tags of the image, not only those of this digest."""
    tag: str = ""
    digest: str = ""
    platform: str = ""
    """The one that the values below are of, where there are several."""
    platforms: list[Platform] = []
    created_at: float | None = None
    pushed_at: float | None = None
    size: int | None = None
    entrypoint: list[str] = []
    command: list[str] = []
    env: dict[str, str] = {}
    workdir: str = ""
    user: str = ""
    ports: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    vulnerabilities: Vulnerabilities | None = None
