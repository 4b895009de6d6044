"""What resolution needs to know of a site and a user: plain data, filled from the settings."""

from __future__ import annotations

from typing import Any

import msgspec

from jobman.spec.shapes import Part


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named context: what it adds, as the keys a task would carry."""

    name: str
    requires: dict[str, str] = {}
    attributes: Any = None
    policies: dict[str, Any] = {}
    labels: dict[str, str] = {}
    """The profile is added to a document that carries one of these labels; an empty value matches any."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Flavors, defaults, profiles and names of a site."""

    flavors: dict[str, Part] = {}
    default_flavor: str | None = None
    default_image: str | None = None
    image_prefix: str = ""
    """Stands before images that name no registry, where an engine pulls them for others."""
    resource_types: tuple[str, ...] = ()
    user: dict[str, str | int | float | bool | None] = {}
    profiles: dict[str, Profile] = {}
    queues: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
