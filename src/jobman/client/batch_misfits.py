"""Why a job can never start on the nodes there are: managers only say that it cannot."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.control.refusals import Refusal
from jobman.engines.scripts.commands import Failed, NotThere
from jobman.engines.scripts.delegate import Delegate
from jobman.engines.scripts.matching import ELSEWHERE
from jobman.plan.model import Plan
from jobman.plan.satisfy import Match
from jobman.settings.slurm import BatchSite

_MOST = 3


def with_reasons(refusal: Refusal, plan: Plan, manager: Delegate, site: BatchSite) -> Refusal:
    """A refusal for want of nodes, with what is missing as far as the nodes tell."""
    if refusal.code != "does-not-fit":
        return refusal
    try:
        matches = manager.matches(plan, manager.nodes(), site)
    except (Failed, NotThere):
        return refusal
    found = [f"{match.unit}: {words}" for match in matches if not match.satisfied for words in _words(match)]
    # What lies inside of a group is what it asks for itself.
    tops = {unit.id for unit in plan.children()}
    found = [each for each in found if each.partition(":")[0] in tops]
    if not found:
        return refusal
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    message = f"the job can never start here: {'; '.join(found[:_MOST])}{more}"
    return Refusal(refusal.code, f"{message} ({refusal.message})", refusal.advice)


def _words(match: Match) -> Iterator[str]:
    for part in match.alternatives[0].parts:
        if not part.enough:
            # That nodes of other queues are in other queues is no news.
            own = [each for each in part.obstacles if each.key not in ELSEWHERE]
            reasons = ", ".join(obstacle.words for obstacle in own or part.obstacles)
            yield (
                f"{part.wanted}: {reasons}"
                if reasons
                else f"{part.wanted}, and there is room for {part.room}"
            )
