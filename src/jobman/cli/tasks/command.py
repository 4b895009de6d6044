"""`jobman task` and the commands below it."""

from __future__ import annotations

import typer

from jobman.cli.commands import Trailing
from jobman.cli.tasks.agents import agents
from jobman.cli.tasks.batches import batches
from jobman.cli.tasks.cancel import cancel
from jobman.cli.tasks.cluster import cluster
from jobman.cli.tasks.dead import dead
from jobman.cli.tasks.events import events
from jobman.cli.tasks.processes import agent, broker, serve
from jobman.cli.tasks.results import results
from jobman.cli.tasks.show import show
from jobman.cli.tasks.stats import stats
from jobman.cli.tasks.submit import submit
from jobman.cli.tasks.types import types
from jobman.cli.tasks.usage import usage

task = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Have short tasks done, by the million, on workers that live long.",
)
_USED, _LOOKED_AFTER, _RUN = "Your tasks", "Who does them", "Processes"

task.command("submit", rich_help_panel=_USED)(submit)
task.command("results", rich_help_panel=_USED)(results)
task.command("stats", rich_help_panel=_USED)(stats)
task.command("batches", rich_help_panel=_USED)(batches)
task.command("show", rich_help_panel=_USED)(show)
task.command("cancel", rich_help_panel=_USED)(cancel)
task.add_typer(dead, name="dead", rich_help_panel=_USED)
task.command("events", rich_help_panel=_USED)(events)
task.command("usage", rich_help_panel=_USED)(usage)
task.add_typer(types, name="types", rich_help_panel=_LOOKED_AFTER)
task.command("agents", rich_help_panel=_LOOKED_AFTER)(agents)
task.command("serve", rich_help_panel=_RUN)(serve)
task.command("agent", rich_help_panel=_RUN, cls=Trailing)(agent)
task.command("broker", rich_help_panel=_RUN)(broker)
task.command("cluster", rich_help_panel=_RUN)(cluster)
