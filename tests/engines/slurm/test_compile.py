"""Plans as scripts: what a shell makes of them, and what their headers ask for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from jobman.api import load_all
from jobman.engines.scripts.by_hand import submit_script
from jobman.engines.scripts.site import Job
from jobman.engines.slurm.by_hand import BY_HAND
from jobman.engines.slurm.compile import Script, compile_plan, dependency
from jobman.engines.slurm.features import refusals
from jobman.plan.model import Plan
from jobman.settings import settings_from_text
from jobman.settings.slurm import SlurmSite
from tests.conformance.evidence import plan_of as plan_of_document
from tests.conformance.evidence import scenarios
from tests.engines.scripts.running import ONE, plan_of, scripts_of

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SEEDS = [
    path
    for path in sorted((ROOT / "tests" / "fixtures" / "seeds").glob("*.yaml"))
    if path.with_suffix(".expected.json").exists()
]
SITE = SlurmSite(
    container=("apptainer", "exec", "docker://{image}"), resources={"licence": "license/licence"}
)
SETTINGS = settings_from_text("resource_types: [licence, rack]\n", "settings.yaml")
TWO = f"- {{name: a, command: ['true'], {ONE}}}\n- {{name: b, command: ['true'], depends_on: a, {ONE}}}"


def plans_of(path: Path) -> list[Plan]:
    """Those of a file that Slurm would take."""
    specs = load_all(path, settings=SETTINGS)
    return [spec.plan() for spec in specs if spec.ok and not refusals(spec.plan(), SITE)]


def complaints(text: str) -> str:
    """What a shell says against a script that it reads and does not run."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, timeout=30)
    return done.stderr if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"


def check(plan: Plan) -> None:
    job = Job(id="0123456789ab", name="it's a $job", folder="/a b/j", file="job.yaml", cwd="/w's")
    scripts = compile_plan(plan, job, SITE)
    for script in scripts:
        assert complaints(script.text) == ""
        assert script.text.startswith("#!/bin/bash\n#SBATCH ")
    assert complaints(submit_script(job, [script.piece for script in scripts], BY_HAND)) == ""


@pytest.mark.parametrize("path", [*EXAMPLES, *SEEDS], ids=lambda path: path.stem)
def test_a_shell_reads_the_scripts_of_an_example(path: Path) -> None:
    for plan in plans_of(path):
        check(plan)


def test_most_examples_can_be_compiled() -> None:
    assert sum(bool(plans_of(path)) for path in EXAMPLES) >= len(EXAMPLES) // 2
    assert all(plans_of(path) for path in SEEDS)


@pytest.mark.slow
def test_a_shell_reads_the_scripts_of_every_scenario() -> None:
    documents = {document for scenario in scenarios() for document in scenario.documents}
    plans = [plan for document in documents if (plan := plan_of_document(document)) is not None]
    taken = [plan for plan in plans if not refusals(plan, SITE)]
    assert len(taken) > 150
    for plan in taken:
        check(plan)


# -- what a script says -------------------------------------------------------------------------------------


def header(script: Script) -> list[str]:
    """The options of a script, up to its first line that is no comment."""
    lines = script.text.splitlines()[1:]
    end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [line.removeprefix("#SBATCH ") for line in lines[:end] if line.startswith("#SBATCH ")]


def option(script: Script, name: str) -> str | None:
    found = [line for line in header(script) if line.partition("=")[0] == f"--{name}"]
    return found[0].partition("=")[2] if found else None


def only(tasks: str, site: SlurmSite | None = None, head: str = "") -> Script:
    (script,) = scripts_of(plan_of(tasks, head=head), "/j", site)
    return script


def test_every_option_is_before_the_first_command() -> None:
    script = only(f"- {{name: a, command: ['true'], {ONE}}}")
    assert len(header(script)) == script.text.count("\n#SBATCH ")


def test_comments_name_the_task_and_its_line() -> None:
    first, second = scripts_of(plan_of(TWO), "/j")
    assert "task `a` (job.yaml, line 4)" in first.text
    assert "task `b` (job.yaml, line 5)" in second.text


def test_a_script_has_no_table_without_entries() -> None:
    for script in scripts_of(plan_of(TWO), "/j"):
        assert not re.search(r"declare -A \w+=\(\)$", script.text, re.MULTILINE)


def test_replicas_are_an_array_with_as_many_at_once_as_may_be() -> None:
    script = only(f"- {{name: a, command: ['true'], replicas: 8, parallelism: 2, {ONE}}}")
    assert option(script, "array") == "0-7%2"
    assert option(script, "output") == "/j/slurm-%A_%a.out"


def test_time_is_enough_for_all_attempts_and_their_grace() -> None:
    script = only(
        f"- {{name: a, command: ['true'], retries: {{limit: 2, delay: 30s}},"
        f" attributes: {{duration: 10m}}, grace: 1m, {ONE}}}"
    )
    assert int(option(script, "time") or 0) >= 3 * 11 + 1


def test_without_a_limit_slurm_decides_unless_the_site_does() -> None:
    tasks = f"- {{name: a, command: ['true'], {ONE}}}"
    assert option(only(tasks), "time") is None
    assert int(option(only(tasks, SlurmSite(default_time=3600.0)), "time") or 0) >= 60


def test_the_site_says_who_pays_and_where() -> None:
    site = SlurmSite(
        account="phys", queues={"batch": "long"}, partition="main", qos="normal", reservation="r1"
    )
    tasks = f"- {{name: a, command: ['true'], {ONE}}}"
    script = only(tasks, site)
    found = [option(script, name) for name in ("account", "partition", "qos", "reservation")]
    assert found == ["phys", "main", "normal", "r1"]
    script = only(tasks, site, head="account: chem\n")
    assert option(script, "account") == "chem"


def test_facts_become_a_constraint() -> None:
    script = only(f"- {{name: a, command: ['true'], requires: {{fabric: ib, ssd: 'yes'}}, {ONE}}}")
    assert option(script, "constraint") == "ib&ssd"


def test_what_the_document_gives_stands_in_place_of_what_is_generated() -> None:
    flags = "attributes: {flags: {slurm: [--cpus-per-task=3, -p, long]}}"
    script = only(f"- {{name: a, command: ['true'], {flags}, {ONE}}}", SlurmSite(partition="main"))
    assert [line for line in header(script) if "cpus-per-task" in line] == ["--cpus-per-task=3"]
    assert option(script, "partition") is None
    assert "-p long" in header(script)


def test_lines_of_the_site_come_before_everything_else_that_runs() -> None:
    (script,) = scripts_of(
        plan_of(f"- {{name: a, command: ['true'], {ONE}}}"), "/j", prologue=("module load x",)
    )
    lines = script.text.splitlines()
    assert lines.index("module load x") < lines.index("unit_1() {")


def test_dependencies_are_by_id() -> None:
    _, second = scripts_of(plan_of(TWO), "/j")
    assert dependency(second.piece, {"a": "17"}) == ["--dependency=afterok:17", "--kill-on-invalid-dep=yes"]
