"""Finding, reading and laying settings over each other."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from yaml.nodes import MappingNode

from jobman.settings.consistency import problems_between
from jobman.settings.model import WRITTEN, Flavor, NamedProfile, Written, amount_of, type_of
from jobman.spec import shapes
from jobman.spec.policies import INHERITED, MERGED_BY_NAME
from jobman.spec.problems import Problems, SpecError
from jobman.spec.reading import BAD, Reading, child, describe
from jobman.spec.records import keys_of
from jobman.spec.resources import Shape
from jobman.spec.shapes import Amount, Part
from jobman.spec.shaping import Shapes
from jobman.spec.site import Profile, Site
from jobman.spec.source import Source, read_source
from jobman.spec.yaml import compose, is_null

HOME_FILES = ("settings.json", "settings.yaml", "settings.yml")
_NAMED_LISTS = ("flavors", "profiles", "queues", "priorities", "accounts", "registries")
_TOLD_APART = {"queues": "queue", "accounts": "account", "registries": "registry"}
"""Lists in which a name stands once in a file."""
_MAPPINGS = ("user", "facts")
_SECTIONS = ("scheduler", "accounting", "kubernetes", "slurm", "flux", "tasks")


class Settings:
    """The settings in force, with the file each value came from."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.readings: dict[int, Reading] = {}
        self.records: dict[str, Any] = {}
        """The section that a value came from, by its dotted key."""
        self._site: Site | None = None

    def lay(self, written: Written, reading: Reading, origin: str) -> None:
        """Lay a file over what is there: named things by name, mappings by key, the rest as a whole."""
        for key, value in written.given.items():
            if key in _NAMED_LISTS:
                self._lay_named(key, value, reading, origin)
            elif key in _MAPPINGS:
                self.values.setdefault(key, {}).update(value)
                self.origins.update({f"{key}.{name}": origin for name in value})
            elif key in _SECTIONS:
                self._lay_section(key, value, reading, origin)
            else:
                self.values[key] = value
                self.origins[key] = origin

    def _lay_named(self, key: str, items: tuple[Any, ...], reading: Reading, origin: str) -> None:
        named = self.values.setdefault(key, {})
        seen: set[str] = set()
        for item in items:
            if key in _TOLD_APART and item.name in seen:
                reading.report("JS720", child(item.node, "name"), what=_TOLD_APART[key], name=item.name)
                continue
            seen.add(item.name)
            named[item.name] = item
            self.origins[f"{key}.{item.name}"] = origin
            self.readings[id(item)] = reading

    def _lay_section(self, key: str, written: Any, reading: Reading, origin: str) -> None:
        """Lay a section over what is there: key by key, and so what is in its keys."""
        section = self.values.setdefault(key, {})
        for name, value in (written if isinstance(written, dict) else written.given).items():
            plain = msgspec.to_builtins(value)
            section[name] = {**section.get(name, {}), **plain} if isinstance(plain, dict) else plain
            self.origins[f"{key}.{name}"] = origin
            self.records[f"{key}.{name}"] = written
        self.readings[id(written)] = reading

    def site(self) -> Site:
        """What resolution needs of the settings."""
        if self._site is None:
            self._site = self._make_site()
        return self._site

    def priority(self, name: str | None) -> int:
        """The weight of a priority class; a class the settings do not know weighs nothing."""
        known = self.values.get("priorities", {}).get(name)
        return 0 if known is None else int(known.value)

    def _make_site(self) -> Site:
        resource_types = tuple(self.values.get("resource_types", ()))
        return Site(
            flavors={name: self._part(flavor, resource_types) for name, flavor in self._named("flavors")},
            default_flavor=self.values.get("default_flavor"),
            default_image=self.values.get("default_image"),
            image_prefix=self.values.get("image_prefix", ""),
            resource_types=resource_types + self._flavor_types(),
            user=self.values.get("user", {}),
            profiles={name: _profile(profile) for name, profile in self._named("profiles")},
            queues=tuple(self.values.get("queues", {})),
            priorities=tuple(self.values.get("priorities", {})),
        )

    def as_data(self) -> dict[str, Any]:
        """The settings as they would be written in one file."""
        data: dict[str, Any] = {}
        for key, value in self.values.items():
            data[key] = [_as_written(item) for item in value.values()] if key in _NAMED_LISTS else value
        return data

    def rows(self) -> list[tuple[str, str]]:
        """Every setting by its dotted key, as one line each."""
        rows = []
        for key in self.origins:
            family, _, name = key.partition(".")
            value = self.values[family]
            shown = (
                _as_written(value[name])
                if name and family in _NAMED_LISTS
                else value[name]
                if name
                else value
            )
            if isinstance(shown, dict):
                shown.pop("name", None)
            rows.append((key, shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()))
        return rows

    def _named(self, key: str) -> list[tuple[str, Any]]:
        return list(self.values.get(key, {}).items())

    def _flavor_types(self) -> tuple[str, ...]:
        names = {
            type_of(name)
            for _, flavor in self._named("flavors")
            if flavor.resources is not None
            for name in flavor.resources.requests
        }
        return tuple(sorted(names - {"core", "memory", "storage", "gpu"}))

    def _part(self, flavor: Flavor, resource_types: tuple[str, ...]) -> Part:
        if flavor.resources is not None:
            written = flavor.resources
            named = shapes.Flavor(flavor.name, written.requests, written.limits)
            return Part(each=_amounts(written.requests), flavor=named)
        reading = self.readings[id(flavor)]
        alternatives = Shapes({}, Site(resource_types=resource_types), reading).of(flavor.shape)
        if alternatives is None:
            raise SpecError(reading.problems)
        return msgspec.structs.replace(alternatives[0][0], flavor=shapes.Flavor(flavor.name))


def load_settings(path: str | Path | None = None, home: Path | None = None) -> Settings:
    """The template with the user's file over it, or the one file that was named instead of both."""
    settings = Settings()
    if path is not None:
        _lay_file(settings, str(path))
    else:
        _lay_usual_files(settings, home)
    settings.site()  # A flavor whose shape is impossible is refused here, not at its first use.
    return settings


def settings_from_text(text: str, name: str = "settings") -> Settings:
    """Settings from a text, instead of the usual files."""
    settings = Settings()
    _lay_source(settings, Source(name, text), name, Problems())
    settings.site()
    return settings


def home_file(home: Path | None = None) -> Path | None:
    """The user's own file of settings, if there is one."""
    folder = (home or Path.home()) / ".jobman"
    return next((folder / name for name in HOME_FILES if (folder / name).exists()), None)


def _lay_usual_files(settings: Settings, home: Path | None) -> None:
    template = files("jobman.settings").joinpath("template.yaml").read_text("utf-8")
    _lay_source(settings, Source("template", template), "template", Problems())
    own = home_file(home)
    if own is not None:
        _lay_file(settings, str(own))


def _lay_file(settings: Settings, path: str) -> None:
    problems = Problems()
    source = read_source(path, problems)
    if source is None:
        raise SpecError(problems)
    _lay_source(settings, source, path, problems)


def _lay_source(settings: Settings, source: Source, origin: str, problems: Problems) -> None:
    nodes, source = compose(source, problems)
    reading = Reading(source, problems)
    for node in nodes:
        if is_null(node):
            continue
        if not isinstance(node, MappingNode):
            reading.report("JS113", node, found=describe(node))
            continue
        written = WRITTEN.read(node, reading)
        if written is not BAD:
            settings.lay(written, reading, origin)
    if found := problems_between(settings, problems):
        raise SpecError(found)


def _nothing(_node: Any) -> None:
    """What is left of a YAML node in plain data."""


def _as_written(item: Any) -> dict[str, Any]:
    """A named thing with the keys it was given."""
    plain: dict[str, Any] = msgspec.to_builtins(
        {
            name: item.given[field]
            for name, (field, _) in keys_of(item.__class__).items()
            if field in item.given
        },
        enc_hook=_nothing,
    )
    if "shape" in plain:
        plain["shape"] = _written_shape(item.shape)
    return plain


def _written_shape(shape: Shape) -> dict[str, Any]:
    """A shape with the keys a document would use."""
    written: dict[str, Any] = {"type": shape.type, "count": shape.count}
    if shape.exclusive:
        written["exclusive"] = True
    if shape.requires:
        written["requires"] = shape.requires
    if shape.with_:
        written["with"] = [_written_shape(inner) for inner in shape.with_]
    return written


def _amounts(requests: dict[str, str]) -> dict[str, Amount]:
    amounts: dict[str, Amount] = {}
    for name, text in requests.items():
        kind = type_of(name)
        amounts[kind] = amounts.get(kind, 0) + (amount_of(name, text) or 0)
    return amounts


def _profile(written: NamedProfile) -> Profile:
    keys = (*INHERITED, *MERGED_BY_NAME)
    return Profile(
        name=written.name,
        labels=written.labels,
        attributes=written.attributes,
        requires=written.requires or {},
        policies={key: written.given[key] for key in keys if key in written.given},
    )
