"""File names of output: `%j`, `%a` and the like, as a fixed path or as the text that a shell makes one of."""

from __future__ import annotations

import re
from typing import NamedTuple

_PATTERN = re.compile(r"%(\d*)([%AaJjNnstux])")
_VARIABLES = {
    "A": "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}",
    "a": "${SLURM_ARRAY_TASK_ID:-4294967294}",
    "J": "${SLURM_JOB_ID}",
    "j": "${SLURM_JOB_ID}",
    "N": "$(hostname | cut -d. -f1)",
    "n": "${SLURM_NODEID:-0}",
    "u": "$(id -un)",
}


class FileName(NamedTuple):
    """A path; `is_made` where a shell has to make it when the job runs."""

    text: str
    is_made: bool


def file_name(pattern: str, job_name: str) -> FileName:
    """What a pattern of Slurm stands for in the script itself."""
    if "\\" in pattern:
        return FileName(pattern.replace("\\", ""), False)
    fixed = {"%": "%", "s": "batch", "t": "0", "x": job_name}
    if all(found[2] in fixed for found in _PATTERN.finditer(pattern)):
        return FileName(_PATTERN.sub(lambda found: fixed[found[2]], pattern), False)
    made, end = [], 0
    for found in _PATTERN.finditer(pattern):
        made.append(_literal(pattern[end : found.start()]))
        made.append(_literal(fixed[found[2]]) if found[2] in fixed else _variable(found[2], found[1]))
        end = found.end()
    return FileName("".join([*made, _literal(pattern[end:])]), True)


def _variable(letter: str, width: str) -> str:
    """Only the number of an array's task is sure to be one that can be padded."""
    text = _VARIABLES[letter]
    return f'$(printf %0{int(width)}d "{text}")' if letter == "a" and width and int(width) else text


def _literal(text: str) -> str:
    return re.sub(r'([$`"\\])', r"\\\1", text)
