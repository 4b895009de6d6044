"""Parameters: defaults from the document, overrides from the command line, values of the user."""

from __future__ import annotations

from collections.abc import Mapping

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.reading import TEMPLATE, Reading, as_text, child
from jobman.spec.suggest import closest, listing
from jobman.spec.yaml import Scalar, plain_value, scalar_value

_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def define_parameters(
    document: Node, overrides: Mapping[str, str], user: Mapping[str, Scalar], reading: Reading
) -> None:
    """Fill the reading's values before anything else is read."""
    written = _written(document)
    values: dict[str, Scalar] = {f"user.{key}": value for key, value in user.items()}
    for name, node in written.items():
        values[name] = scalar_value(node)
    for name, text in overrides.items():
        if name in written:
            values[name] = _overridden(name, text, written[name], reading)
        else:
            meant = closest(name, written)
            known = f"it has {listing(written)}" if written else "it defines no `parameters`"
            reading.report("JS802", None, name=name, hint=f"did you mean `{meant}`?" if meant else known)
    reading.values = values
    for name, node in written.items():
        reading.values[name] = _expanded(name, values, [], node, reading)


def report_unused(document: Node, reading: Reading) -> None:
    """Parameters that stand nowhere."""
    parameters = child(document, "parameters")
    if not isinstance(parameters, MappingNode) or parameters is document:
        return
    for key, _ in parameters.value:
        if key.value in reading.values and key.value not in reading.used:
            reading.report("JS804", key, name=key.value)


def _written(document: Node) -> dict[str, ScalarNode]:
    parameters = child(document, "parameters")
    if not isinstance(parameters, MappingNode) or parameters is document:
        return {}
    return {key.value: value for key, value in parameters.value if isinstance(value, ScalarNode)}


def _overridden(name: str, text: str, node: ScalarNode, reading: Reading) -> Scalar:
    default = scalar_value(node)
    if isinstance(default, str) or default is None:
        return text
    value = plain_value(text)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        reading.report("JS803", node, name=name, expected=_TYPES[type(default)], found=f'"{text}"')
        return default
    return value


def _expanded(
    name: str, values: Mapping[str, Scalar], above: list[str], node: Node, reading: Reading
) -> Scalar:
    """A parameter whose default uses other parameters."""
    value = values[name]
    if not isinstance(value, str) or "{{" not in value:
        return value
    if name in above:
        reading.report("JS808", node, name=name)
        return ""
    for other in dict.fromkeys(TEMPLATE.findall(value)):
        if other in values:
            reading.used.add(other)
            inner = _expanded(other, values, [*above, name], node, reading)
            value = TEMPLATE.sub(lambda m, o=other, i=inner: as_text(i) if m[1] == o else m[0], value)  # type: ignore[misc]
    return value
