"""From a source to documents: read, check, resolve; every problem of a file in one go."""

from __future__ import annotations

from collections.abc import Mapping

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobman.spec.model import DOCUMENT, VERSIONS
from jobman.spec.parameters import define_parameters, report_unused
from jobman.spec.problems import Edit, Place, Problems
from jobman.spec.reading import BAD, Reading, child, describe
from jobman.spec.records import has_key
from jobman.spec.resolve import Job, resolve
from jobman.spec.site import Site
from jobman.spec.source import Source
from jobman.spec.yaml import PLAIN, compose, is_null, scalar_value

NO_OVERRIDES: Mapping[str, str] = {}


def load_jobs(
    source: Source, site: Site, problems: Problems, overrides: Mapping[str, str] = NO_OVERRIDES
) -> list[Job | None]:
    """Every document of a source, resolved; None stands for one that could not be read."""
    nodes, source = compose(source, problems)
    documents = [node for node in nodes if not is_null(node)]
    if not documents and not problems.has_errors:
        problems.add("JS007", Place(source.name, 1, 1, 1, 2), line_text=source.line(1))
    return [_load_job(node, source, site, problems, overrides) for node in documents]


def _load_job(
    node: Node, source: Source, site: Site, problems: Problems, overrides: Mapping[str, str]
) -> Job | None:
    reading = Reading(source, problems)
    if isinstance(node, SequenceNode):
        node = _report_list(node, reading)
    if not isinstance(node, MappingNode):
        reading.report("JS113", node, found=describe(node))
        return None
    _check_version(node, reading)
    define_parameters(node, overrides, site.user, reading)
    document = DOCUMENT.read(node, reading)
    if document is BAD:
        return None
    job = resolve(document, site, reading)
    report_unused(node, reading)
    return job


def _check_version(node: MappingNode, reading: Reading) -> None:
    version = child(node, "version")
    if version is node or version is None:
        start = reading.source.index(node.start_mark.line, 0)
        fix = () if node.flow_style else (Edit(start, start, "version: 1\n"),)
        first = node.value[0][0] if node.value else node
        reading.report("JS110", first, fix=fix)
    elif isinstance(version, ScalarNode) and _is_unknown(scalar_value(version)):
        known = " and ".join(str(number) for number in VERSIONS)
        reading.report("JS111", version, version=version.value, known=known)


def _is_unknown(version: object) -> bool:
    return isinstance(version, int | float) and version not in VERSIONS


def _report_list(node: SequenceNode, reading: Reading) -> MappingNode:
    """Refuse a bare list; returns the document that was probably meant, to find what else is wrong in it."""
    key = "groups" if node.value and all(has_key(item, "tasks") for item in node.value) else "tasks"
    start = reading.source.index(node.start_mark.line, 0)
    fix = () if node.flow_style else (Edit(start, start, f"version: 1\n{key}:\n"),)
    reading.report("JS112", node, fix=fix, key=key)
    at = node.start_mark
    version = (ScalarNode(PLAIN, "version", at, at), ScalarNode(PLAIN, "1", at, at))
    return MappingNode(
        PLAIN, [version, (ScalarNode(PLAIN, key, at, at), node)], at, node.end_mark, flow_style=False
    )
