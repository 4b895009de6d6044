"""Parameters: defaults from the document, overrides from the command line, values of the user."""

from __future__ import annotations

from collections.abc import Mapping

from yaml.nodes import MappingNode, Node, ScalarNode

from jobman.spec.reading import TEMPLATE, Reading, child
from jobman.spec.suggest import closest, did_you_mean, listing
from jobman.spec.yaml import Scalar, is_null, plain_value, scalar_value

MAX_LEVELS = 50
MAX_LENGTH = 65_536
_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def define_parameters(
    document: Node, overrides: Mapping[str, str], user: Mapping[str, Scalar], reading: Reading
) -> None:
    """Fill the reading's values before anything else is read."""
    written = _written(document)
    values = {f"user.{key}": _as_text(value) for key, value in user.items()}
    for name, node in written.items():
        values[name] = "" if is_null(node) else node.value
    for name, text in overrides.items():
        if name in written:
            values[name] = _overridden(name, text, written[name], reading)
        else:
            meant = closest(name, written)
            known = f"it has {listing(written)}" if written else "it defines no `parameters`"
            reading.report("JS802", None, name=name, hint=did_you_mean(meant, known))
    reading.values = values
    for name, node in written.items():
        reading.values[name] = _expanded(name, values, (), node, reading)


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


def _overridden(name: str, text: str, node: ScalarNode, reading: Reading) -> str:
    """A value from the command line, of the type of the default."""
    default = scalar_value(node)
    if isinstance(default, str) or default is None:
        return text
    value = plain_value(text)
    whole_for_fraction = isinstance(default, float) and type(value) is int
    if type(value) is not type(default) and not whole_for_fraction:
        reading.report("JS803", node, name=name, expected=_TYPES[type(default)], found=f'"{text}"')
        return str(node.value)
    return text


def _as_text(value: Scalar) -> str:
    """A value of the settings as it would be typed."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _expanded(name: str, values: dict[str, str], above: tuple[str, ...], node: Node, reading: Reading) -> str:
    """A parameter whose default uses other parameters; what is found is kept, so each is expanded once."""
    value = values[name]
    if "{{" not in value:
        return value
    if name in above:
        reading.report("JS808", node, name=name)
        return ""
    if len(above) >= MAX_LEVELS:
        reading.report(
            "JS812", node, name=name, reason=f"refers to others more than {MAX_LEVELS} levels deep"
        )
        return ""
    inner = {}
    for other in dict.fromkeys(TEMPLATE.findall(value)):
        if other in values:
            reading.used.add(other)
            inner[other] = _expanded(other, values, (*above, name), node, reading)
    if sum(value.count(other) * len(text) for other, text in inner.items()) > MAX_LENGTH:
        reading.report(
            "JS812", node, name=name, reason=f"is longer than {MAX_LENGTH:,} characters when filled in"
        )
        return ""
    values[name] = TEMPLATE.sub(lambda match: inner.get(match[1], match[0]), value)
    return values[name]
