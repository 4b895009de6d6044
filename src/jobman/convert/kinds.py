"""Which kind of text it is: a batch script of Slurm or Flux, or a job specification of Flux."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import yaml

from jobman.convert.flux_batch import convert_flux_script
from jobman.convert.flux_jobspec import convert_jobspec, is_jobspec
from jobman.convert.flux_lines import is_flux_script
from jobman.convert.outcome import Converted
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch import convert_sbatch
from jobman.spec.problems import Place


def convert(
    name: str, text: str, now: datetime, *, arguments: Sequence[str] = (), strict: bool = False
) -> Converted:
    """A text of any kind that is known; `now` is what `tomorrow` is seen from."""
    if text.startswith("#!") or text.lstrip().startswith("#SBATCH"):
        read = convert_flux_script if _is_flux(text) else convert_sbatch
        return read(name, text, now, arguments=arguments, strict=strict)
    data = _data(text)
    if is_jobspec(data):
        return convert_jobspec(name, data, strict=strict)
    remarks = Remarks()
    remarks.add("JC111", Place(name, 1, 1, 1, 2), text.split("\n", 1)[0])
    return Converted(None, remarks.in_order())


def _is_flux(text: str) -> bool:
    return is_flux_script(text) and not any(line.startswith("#SBATCH") for line in text.split("\n"))


def _data(text: str) -> Any:
    """JSON is YAML, too."""
    try:
        return yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
