"""The commands there are, and the group that imports one when it is used.

Until then the name, the family and one sentence of each are enough: for `--help`, and for a guess at a
misspelt name. So a command pays for its own imports and for nobody else's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from jobman.cli.coercion import spare


class Entry(NamedTuple):
    """Where a command lives, as `module:name`; the name is a function, or an app with commands of its own."""

    home: str
    help: str
    family: str = ""

    def load(self) -> Any:
        module, _, name = self.home.partition(":")
        return getattr(__import__(f"jobman.cli.{module}", fromlist=[name]), name)


FAMILIES: dict[str, dict[str, Entry]] = {
    "Jobs": {
        "run": Entry("run:run", "Run a document or a command, follow its output, end with its exit code."),
        "submit": Entry("submit:submit", "Submit documents or a command, and return at once."),
        "list": Entry("jobs:list_jobs", "List jobs, the newest first."),
        "details": Entry("details:details", "Show a job: its tasks, replicas, conditions and document."),
        "logs": Entry("logs:logs", "Print the output of a job's copies, merged in order of time."),
        "events": Entry("events:events", "List what happened to a job."),
        "why": Entry("why:why", "Say why a job is where it is, when it starts, and what would help."),
        "wait": Entry("jobs:wait", "Wait for jobs to end, and end with their exit code."),
        "cancel": Entry("acts:cancel", "Cancel jobs: what runs is stopped, cleanup still runs."),
        "delete": Entry("acts:delete", "Delete jobs that are over, with their output."),
        "hold": Entry("acts:hold", "Hold jobs: nothing new of them starts."),
        "release": Entry("acts:release", "Release jobs that are held."),
        "extend": Entry("acts:extend", "Give a job more time."),
        "gate": Entry("acts:gate", "Open the gates that a job waits for."),
        "rerun": Entry("rerun:rerun", "Submit a job again, all of it or what failed."),
        "connect": Entry("connect:connect", "Open a shell where a copy of a job runs, or reach its ports."),
        "sbatch": Entry("sbatch:sbatch", "Submit a batch script of Slurm to any engine."),
    },
    "Language": {
        "check": Entry("check:check", "Check documents: all problems of each file, with place and advice."),
        "explain": Entry("explain:explain", "Show what a document means: copies, totals, values, features."),
        "satisfy": Entry("satisfy:satisfy", "Match requires and shapes against nodes."),
        "render": Entry(
            "render:render", "Print what a document becomes on an engine, as its own YAML or scripts."
        ),
        "convert": Entry("convert:convert", "Write a script of Slurm or Flux as a document."),
        "schema": Entry("schema:schema", "Print the JSON schema of a JobSpec, for editors and validators."),
        "features": Entry("features:features", "List every feature of the language."),
    },
    "Tasks": {
        "task": Entry(
            "tasks.command:task", "Have short tasks done, by the million, on workers that live long."
        ),
    },
    "Cluster": {
        "queue": Entry(
            "queues:queue", "List the flavors in demand: waiting, running, yours, the next start."
        ),
        "nodes": Entry("nodes:nodes", "List the nodes, and how much of each is in use."),
        "top": Entry("top.command:top", "Show the queue and the nodes, live."),
        "resources-flavors": Entry(
            "cluster:resources_flavors", "List the flavors of the settings, and where each came from."
        ),
        "images": Entry("images:images", "List the images of the registries: tags, description, size."),
        "image-details": Entry(
            "images:image_details", "Show an image: description, tags, platforms, what it runs."
        ),
        "simulate": Entry("simulate:simulate", "Replay a trace under policies, and compare them."),
        "maintenance": Entry("maintenance:maintenance", "Plan times in which nothing runs on some nodes."),
        "reserve": Entry("reserve:reserve", "Keep nodes free in advance, for people or accounts."),
        "usage": Entry("usage:usage", "Show what was used in a time, and what it cost."),
    },
    "Service": {
        "service": Entry("service:service", "Show, start or stop your own service."),
        "server": Entry("server:server", "Run a service that many people share."),
        "token": Entry("tokens:token", "Manage who may speak to a shared service."),
        "install": Entry("install:install", "Print or apply what a service needs in a cluster."),
    },
    "jobman itself": {
        "settings": Entry("settings:settings", "Print the settings in force and the file each came from."),
        "help": Entry("help_pages:help_page", "Explain a message by its code, or a command."),
        "completion": Entry("completion:completion", "Print a completion script for bash, zsh or fish."),
    },
}
HIDDEN: dict[str, Entry] = {
    "log": Entry("logs:logs", "Another name for logs."),
    "__jobs": Entry("names:names", "The names and ids of jobs, for completion in shells."),
}
TRAILING = ("run", "submit", "connect")
"""The commands that take a command of the user's behind `--`."""
VERBATIM = ("sbatch",)
"""The commands that read all their words by themselves."""
_WORDS = "jobman.trailing"


class Directory(TyperGroup):
    """A group whose commands are signs with a name and a sentence until one is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        spare(self)
        for family, entries in FAMILIES.items():
            for name, entry in entries.items():
                self.add_command(TyperCommand(name, help=entry.help, rich_help_panel=family))
        for name, entry in HIDDEN.items():
            self.add_command(TyperCommand(name, help=entry.help, hidden=True))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, sign, rest = super().resolve_command(ctx, args)
        return name, sign and self.load(sign.name or ""), rest

    def load(self, name: str) -> Any:
        """The command itself."""
        found = (HIDDEN | {name: entry for family in FAMILIES.values() for name, entry in family.items()})[
            name
        ]
        loaded = found.load()
        app = loaded if isinstance(loaded, typer.Typer) else _alone(loaded, name)
        command = typer.main.get_command(app)
        command.name = name
        return spare(command)


class Trailing(TyperCommand):
    """A command that keeps what stands behind `--` apart from its own words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_WORDS] = args[place + 1 :] if place < len(args) else None
        return super().parse_args(ctx, args[:place])


class Verbatim(TyperCommand):
    """A command that reads its words by itself; what it declares is for its help and for completion."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, [])


def trailing(context: typer.Context) -> list[str] | None:
    """The words behind `--`, None where there is no `--`; of a verbatim command all its words."""
    words: list[str] | None = context.meta[_WORDS]
    return words


def _alone(function: Any, name: str) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    cls = Trailing if name in TRAILING else Verbatim if name in VERBATIM else None
    app.command(name, cls=cls)(function)
    return app
