"""Inheritance: what a level takes over from the levels around it, and where each value came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from jobman.spec.attributes import Flags
from jobman.spec.model import Document, Group, Task
from jobman.spec.policies import INHERITED, MERGED_BY_NAME
from jobman.spec.reading import child
from jobman.spec.site import Profile, Site

Level = Literal["document", "group", "task", "flavor", "profile", "settings", "default", "sum"]
_INHERITED = frozenset((*INHERITED, *MERGED_BY_NAME))


class Origin(msgspec.Struct, frozen=True):
    """Where a value was written."""

    level: Level
    name: str = ""
    node: Any = None

    def line(self, *path: str) -> int:
        """The line of a key below the origin; 0 where it has none."""
        node = child(self.node, *path) if self.node is not None else None
        return node.start_mark.line + 1 if node is not None else 0


class Traced(msgspec.Struct, frozen=True):
    """A value and where it came from."""

    value: Any
    origin: Origin


Values = dict[str, Traced]


class Context(msgspec.Struct, frozen=True):
    """What holds at one level: its own values over those from around it."""

    attributes: Values = {}
    environment: Values = {}
    requires: Values = {}
    inherited: Values = {}
    image: Traced | None = None

    def inside(
        self, written: Document | Group | Task, origin: Origin, profiles: Iterable[Profile] = ()
    ) -> Context:
        """The context of an element that stands inside this one: the nearest wins, key by key."""
        context = self
        for profile in profiles:
            context = context._with_profile(profile)
        given = written.given
        attributes, environment = context.attributes, context.environment
        if "attributes" in given:
            attributes, environment = context._with_attributes(given["attributes"], origin)
        requires = context.requires
        if "requires" in given:
            requires = {**requires, **_traced(given["requires"], origin)}
        inherited = context.inherited
        own = _INHERITED.intersection(given)
        if own:
            inherited = merge_inherited(inherited, {key: given[key] for key in own}, origin)
        image = Traced(given["image"], origin) if "image" in given else context.image
        if (
            attributes is self.attributes
            and environment is self.environment
            and requires is self.requires
            and inherited is self.inherited
            and image is self.image
        ):
            return self
        return Context(attributes, environment, requires, inherited, image)

    def _with_attributes(self, written: Any, origin: Origin) -> tuple[Values, Values]:
        attributes = dict(self.attributes)
        environment = self.environment
        for name in written.__struct_fields__:
            value = getattr(written, name)
            if value is None:
                continue
            if name == "environment":
                environment = {**environment, **_traced(value, origin)}
            elif name == "flags" and "flags" in attributes:
                attributes[name] = Traced(_merge_flags(attributes[name].value, value), origin)
            else:
                attributes[name] = Traced(value, origin)
        return attributes, environment

    def _with_profile(self, profile: Profile) -> Context:
        origin = Origin("profile", profile.name)
        attributes, environment = self.attributes, self.environment
        if profile.attributes is not None:
            attributes, environment = self._with_attributes(profile.attributes, origin)
        return Context(
            attributes,
            environment,
            {**self.requires, **_traced(profile.requires, origin)} if profile.requires else self.requires,
            merge_inherited(self.inherited, profile.policies, origin) if profile.policies else self.inherited,
            self.image,
        )


def _traced(values: Mapping[str, Any], origin: Origin) -> Values:
    return {key: Traced(value, origin) for key, value in values.items()}


def merge_inherited(outer: Values, inner: Mapping[str, Any], origin: Origin) -> Values:
    """Inherited policies: lists of named things merge by name, security key by key, the rest is replaced."""
    merged = dict(outer)
    for key, value in inner.items():
        before = merged.get(key)
        if before is None:
            merged[key] = Traced(value, origin)
        elif key in MERGED_BY_NAME:
            merged[key] = Traced(merge_named(before.value, value), origin)
        elif key == "security":
            merged[key] = Traced(_overlay(before.value, value), origin)
        else:
            merged[key] = Traced(value, origin)
    return merged


def merge_named(outer: tuple[Any, ...], inner: tuple[Any, ...]) -> tuple[Any, ...]:
    """Things from around first; one of the same name is replaced in its place."""
    merged = {identity_of(item): item for item in outer}
    merged.update({identity_of(item): item for item in inner})
    return tuple(merged.values())


def identity_of(item: Any) -> Any:
    """What tells two things of a list apart: their name, or what they are."""
    if isinstance(item, str):
        return item
    name = getattr(item, "name", None)
    if name is not None:
        return name
    return getattr(item, "port", None) or getattr(item, "class_", None) or item


def _overlay(outer: Any, inner: Any) -> Any:
    """A record whose given fields replace those of another."""
    given = {
        name: getattr(inner, name) for name in inner.__struct_fields__ if getattr(inner, name) is not None
    }
    return msgspec.structs.replace(outer, **given)


def _merge_flags(outer: Flags, inner: Flags) -> Flags:
    """Flags are displaced engine by engine."""
    return Flags(
        slurm=outer.slurm if inner.slurm is None else inner.slurm,
        flux=outer.flux if inner.flux is None else inner.flux,
        kubernetes=outer.kubernetes if inner.kubernetes is None else inner.kubernetes,
    )


def site_context(site: Site) -> Context:
    """What holds before a document says anything."""
    image = Traced(site.default_image, Origin("settings")) if site.default_image else None
    return Context(image=image)
