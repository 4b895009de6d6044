"""The kinds of names the language knows, and what each may look like."""

from __future__ import annotations

from jobman.spec.kinds import Text

_NAME_RULE = "letters, digits, `-`, `_` and `.`, at most 63, starting with a letter or a digit"
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NAME = Text("a name", NAME_PATTERN, _NAME_RULE)
JOB_REFERENCE = Text("a job's name or id", NAME_PATTERN, _NAME_RULE)
IDENTIFIER = Text(
    "an identifier", r"[A-Za-z_][A-Za-z0-9_]{0,62}", "letters, digits and `_`, not starting with a digit"
)
VARIABLE = Text(
    "a variable's name", r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and `_`, not starting with a digit"
)
LABEL_KEY = Text(
    "a label's key",
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
    "letters, digits, `-`, `_` and `.`, at most 63, with an optional `domain/` before it",
)
LABEL_VALUE = Text(
    "a label's value",
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?",
    "letters, digits, `-`, `_` and `.`, at most 63; other texts are annotations",
    empty=True,
)
TYPE = Text("a resource type", r"[A-Za-z][A-Za-z0-9._/-]{0,62}", "letters, digits, `-`, `_`, `.` and `/`")
PATH = Text("a path", r"[^\0]{1,4096}", "at most 4,096 characters")
ABSOLUTE_PATH = Text("an absolute path", r"/[^\0]{0,4095}", "it starts with `/`")
OCTAL_MODE = Text("an octal mode", r"0?o?[0-7]{3,4}", "three or four octal digits")
IMAGE = Text(
    "a container image",
    r"[a-zA-Z0-9][a-zA-Z0-9._-]*(?::[0-9]+)?(?:/[a-zA-Z0-9._-]+)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-fA-F]{32,})?",
    "`[host[:port]/]name[:tag][@digest]`",
)
FREE = Text("a text", empty=True)
WORD = Text("a text")
