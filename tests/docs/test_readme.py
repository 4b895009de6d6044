"""The README shows what jobman says."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest

from jobman.api import loads
from tests.docs.pages import ROOT, fences
from tests.examples.seen import lines_of

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ jobman (.*)$", re.MULTILINE)
SESSIONS = [fence for fence in fences(README, "console") if COMMAND.search(fence.text)]


@pytest.fixture
def desk(tmp_path):
    """A folder with the files that the README speaks of."""
    shutil.copy(ROOT / "examples" / "showcase.yaml", tmp_path)
    shutil.copy(ROOT / "tests" / "fixtures" / "readme" / "job.yaml", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_a_session_at_the_terminal_is_what_is_shown(session, laptop, desk):
    """Lines of several copies may come in another order; ids and times differ."""
    _, *parts = COMMAND.split(session.text)
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        answer = laptop.jobman(*shlex.split(command), cwd=desk, both=True)
        assert sorted(lines_of(answer.out)) == sorted(lines_of(shown.replace("laptop", "node-0")))


def test_what_check_says_is_shown_to_the_letter(laptop, desk):
    [session] = [session for session in SESSIONS if session.text.startswith("$ jobman check")]
    assert laptop.jobman("check", "job.yaml", cwd=desk, both=True).out == session.text.split("\n", 1)[1]


def test_the_example_is_a_document_without_any_problem_and_means_what_is_said_of_it():
    [example] = fences(README, "yaml")
    spec = loads(example.text, strict=True)
    assert spec.problems == []
    train = spec.plan().unit("train")
    assert (train.replicas, len(train.alternatives), train.duration) == (6, 2, 3600.0)
    assert example.text.splitlines()[4].startswith("attributes: {duration: 1h}")


@pytest.mark.slow
def test_the_example_runs_as_it_is_said_to(laptop, desk):
    [example] = fences(README, "yaml")
    (desk / "train.yaml").write_text(example.text)
    for name in ("prepare", "train", "report"):
        (desk / f"{name}.py").write_text("import sys; print(*sys.argv[1:])\n")
    [command] = re.findall(r"`jobman (run [^`]*train\.yaml)`", TEXT)
    answer = laptop.jobman(*command.split(), cwd=desk)
    assert answer.code == 0, answer.err
    assert "train succeeded 6 6 T T" in lines_of(answer.err)
    assert answer.out.count("--rate 0.01 --seed 3\n") == 4


@pytest.mark.slow
def test_the_lines_of_python_run(laptop, desk):
    _, snippet = fences(README, "python")  # the first is run with the examples of short tasks
    done = subprocess.run(
        [sys.executable, "-c", snippet.text],
        cwd=desk,
        env=laptop.variables(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("succeeded darts-0 3.14288\n")


def test_every_page_the_readme_leads_to_is_there():
    targets = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
