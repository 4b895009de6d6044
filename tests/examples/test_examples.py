"""The examples: each can be read without a complaint, and the table of contents is complete."""

import re
from pathlib import Path

import pytest

from jobman.spec.load import load_jobs
from jobman.spec.problems import Problems
from jobman.spec.site import Site
from jobman.spec.source import Source

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
ROW = re.compile(r"^\| \[(?P<shown>[^\]]+)\]\((?P<file>[^)]+)\) \| (?P<words>.+) \|$", re.MULTILINE)


def opening_comment(text):
    lines = text.splitlines()
    return lines[: next(number for number, line in enumerate(lines) if not line.startswith("#"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_has_no_problem_even_when_strict(path):
    problems = Problems(strict=True)
    jobs = load_jobs(Source(path.name, path.read_text(encoding="utf-8")), Site(), problems)
    assert [f"{problem.place}: {problem.code} {problem.message}" for problem in problems] == []
    assert all(job is not None and job.units for job in jobs)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_opens_with_what_it_shows(path):
    assert 2 <= len(opening_comment(path.read_text(encoding="utf-8"))) <= 4


def test_every_file_has_one_row_and_every_row_its_file():
    rows = [match["file"] for match in ROW.finditer((EXAMPLES / "README.md").read_text(encoding="utf-8"))]
    assert sorted(rows) == [path.name for path in FILES]


def test_a_row_links_to_the_file_it_shows():
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [match["shown"] for match in ROW.finditer(table) if match["shown"] != match["file"]] == []
