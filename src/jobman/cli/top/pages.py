"""Pages to read about one job or one node, as lines with colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobman.cli.amounts import amount_of
from jobman.cli.details import facts_of, table_of
from jobman.cli.tables import Cell, render, render_facts
from jobman.cli.top.looks import Look, words_of
from jobman.cli.why import render_why
from jobman.client import Refused, Unreachable

if TYPE_CHECKING:
    from jobman.client import Client

_TOLD_BY_WHY = ("job", "state", "reason", "conditions", "queue", "priority")


def job_page(client: Client, job_id: str, now: float, width: int) -> str:
    """Why a job is where it is, what is known of it, and its tasks."""
    try:
        why, job = client.why(job_id), client.details(job_id)
    except (Refused, Unreachable) as error:
        return words_of(error)
    facts = [fact for fact in facts_of(job, utc=False) if fact[0] not in _TOLD_BY_WHY]
    lines = [
        *render_why(why, now, width, colour=True),
        "",
        *render_facts(facts, width, colour=True),
        "",
        *render(*table_of(job.tasks), width, colour=True),
    ]
    return "\n".join(lines)


def node_page(look: Look, name: str, width: int) -> str:
    """How much of a node is in use, by which jobs, and what is true of it."""
    node = next((node for node in look.nodes if node.name == name), None)
    if node is None:
        return "it is not there any more"
    names = {job.id: job.name for job in look.running}
    facts: list[tuple[str, str | Cell]] = [
        ("node", Cell(node.name, "bold")),
        ("state", node.state),
        ("reason", node.reason),
        *(
            (kind, f"{amount_of(kind, node.used.get(kind, 0.0))} of {amount_of(kind, amount)} in use")
            for kind, amount in node.amounts.items()
        ),
        ("jobs", ", ".join(f"{names.get(job, '')} ({job})".strip() for job in node.jobs)),
        *sorted((node.facts | node.labels).items()),
    ]
    return "\n".join(render_facts(facts, width, colour=True))
