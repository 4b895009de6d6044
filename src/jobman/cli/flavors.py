"""Flavors: the ones in the settings, and one that is written on the command line as `-r`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from jobman.cli.state import State, stop

if TYPE_CHECKING:
    from jobman.settings import Settings
    from jobman.spec.problems import Problems
    from jobman.spec.source import Source

_SUFFIXES = (".json", ".yaml", ".yml")
_HOME_FILES = ("settings.json", "settings.yaml", "settings.yml")
_INLINE = "-r"


class WrittenFlavor(NamedTuple):
    """A flavor from a file or the command line, and the settings in force with it among them."""

    name: str
    settings: str


def written_flavor(text: str, state: State, form: str) -> WrittenFlavor | None:
    """What `-r` says: inline JSON, or a file by its suffix or a slash; None where it is a name."""
    is_inline = text.lstrip()[:1] in ("{", "[")
    if not is_inline and not text.endswith(_SUFFIXES) and "/" not in text:
        return None
    from jobman.spec.problems import Problems, SpecError
    from jobman.spec.source import Source, read_source

    problems = Problems()
    source = Source(_INLINE, text) if is_inline else read_source(text, problems)
    if source is None:
        stop(problems.in_order(), form)
    settings = state.settings(form)
    try:
        return _lay(source, settings, problems)
    except SpecError as error:
        stop(error.problems, form)


def _lay(source: Source, settings: Settings, problems: Problems) -> WrittenFlavor:
    """Read a flavor as if it stood in a file of settings, and lay it over those in force."""
    import msgspec
    from yaml.nodes import MappingNode, ScalarNode, SequenceNode

    from jobman.settings.load import Settings
    from jobman.settings.model import WRITTEN
    from jobman.spec.problems import Place, SpecError
    from jobman.spec.reading import BAD, Reading
    from jobman.spec.yaml import QUOTED, compose

    nodes, source = compose(source, problems)
    reading = Reading(source, problems)
    if not nodes and not problems.has_errors:
        problems.add("JS213", Place(source.name, 1, 1, 1, 2), noun="the flavor")
    if problems.has_errors:
        raise SpecError(problems)
    # Wrapped in nodes rather than in text, so that places are those of what was written.
    key = ScalarNode(QUOTED, "flavors", nodes[0].start_mark, nodes[0].start_mark)
    wrapped = MappingNode("tag:yaml.org,2002:map", [(key, SequenceNode("tag:yaml.org,2002:seq", nodes[:1]))])
    written = WRITTEN.read(wrapped, reading)
    if written is BAD or problems.has_errors:
        raise SpecError(problems)
    alone = Settings()
    alone.values["resource_types"] = settings.values.get("resource_types", ())
    alone.lay(written, reading, source.name)
    alone.site()  # Refuses a shape that is impossible.
    settings.lay(written, reading, source.name)
    return WrittenFlavor(written.flavors[0].name, msgspec.json.encode(settings.as_data()).decode())


def default_flavor(state: State, form: str) -> bool:
    """Whether the settings name a flavor for tasks without resources.

    Reading settings properly costs more than all the rest of `submit`, and most do not hold the word at all.
    """
    for path in [state.settings_file] if state.settings_file else _usual_files():
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not imported for this
                if b"default_flavor" in file.read():
                    return "default_flavor" in state.settings(form).values
        except OSError:
            continue
    return False


def _usual_files() -> list[str]:
    home = os.path.expanduser("~/.jobman")  # noqa: PTH111
    return [f"{home}/{name}" for name in _HOME_FILES]
