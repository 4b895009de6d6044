"""The README shows what jobman says."""

import re
from pathlib import Path

from typer.testing import CliRunner

from jobman.api import loads
from jobman.cli.main import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


def test_the_terminal_output_is_what_the_command_prints(monkeypatch):
    command, shown = blocks("console")[0].split("\n", 1)
    monkeypatch.chdir(ROOT / "tests" / "fixtures" / "readme")
    result = CliRunner().invoke(app, command.removeprefix("$ jobman ").split())
    assert result.output == shown


def test_the_example_is_a_document_without_any_problem_and_means_what_is_said_of_it():
    spec = loads(blocks("yaml")[0], strict=True)
    assert spec.problems == []
    train = spec.plan().unit("train")
    assert (train.replicas, len(train.alternatives), train.duration) == (6, 2, 3600.0)
    assert blocks("yaml")[0].splitlines()[4].startswith("attributes: {duration: 1h}")


def test_every_page_the_readme_leads_to_is_there():
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
