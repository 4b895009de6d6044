"""What a site says of short tasks, in one file: for its broker, and for whoever keeps workers for it."""

from __future__ import annotations

import msgspec

from jobman.tasks.mapper import Executor, TypeLine
from jobman.tasks.quotas import Quota
from jobman.tasks.scaling import Limits
from jobman.tasks.tenants import OPERATOR
from jobman.tasks.versions import Range

_ADVICE = (
    "under `types` each line has a type and an image; under `scaling` an image has least, most, slots, "
    "target or calm; under `quotas` a tenant has weight, tasks, bytes, slots or workers"
)


class WrongSettings(ValueError):
    """Settings that cannot be followed, and why."""

    code = "wrong-settings"

    def __init__(self, words: str, advice: str = _ADVICE) -> None:
        super().__init__(words)
        self.advice = advice


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says."""

    types: list[TypeLine] = []
    """Who executes what; of several lines that fit the last."""
    mappers: dict[str, str] = {}
    """Others that tasks may name: an address, or `python:NAME` of an entry point."""
    tokens: dict[str, str] = {}
    """Tenants by their tokens; without any, whoever reaches the broker says who it is."""
    operators: tuple[str, ...] = (OPERATOR,)
    """Tenants whose tokens are for agents, scalers and those who look after all of it."""
    quotas: dict[str, Quota] = {}
    scaling: dict[str, Limits] = {}
    """By image; under `*` for all others."""
    price: float = 1.0
    """Of a core, for an hour."""

    @property
    def executors(self) -> dict[str, Executor]:
        """By image; of several lines the last."""
        return {line.image: line.executor for line in self.types}


def read_settings(text: str | bytes) -> SiteSettings:
    """Of YAML or JSON; raises WrongSettings."""
    try:
        found = msgspec.yaml.decode(text or "{}", type=SiteSettings)
        for line in found.types:
            Range(line.versions)
    except msgspec.MsgspecError as error:
        raise WrongSettings(str(error)) from None
    except ValueError as error:
        advice = "write versions such as `2.x`, `>=1.4,<3` or `*`"
        raise WrongSettings(str(error), advice) from None
    for image, each in found.scaling.items():
        if not (0 <= each.least <= each.most and each.most > 0 and each.slots > 0 and each.target > 0):
            advice = "least is not more than most, and slots and target are more than 0"
            raise WrongSettings(f"{image} cannot be scaled like this", advice)
    for tenant, quota in found.quotas.items():
        if not quota.weight > 0:
            raise WrongSettings(f"the weight of {tenant} is {quota.weight:g}", "a weight is more than 0")
    return found
