"""Documents that once broke the reader, each as small as it goes. They are read in a process of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "tests" / "fixtures" / "fuzz"
NAMES = sorted(path.stem for path in FOUND.glob("*.yaml"))
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
from fuzz.run import check
check(open(sys.argv[1], "rb").read())
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_document_that_broke_the_reader_is_read(name):
    command = [sys.executable, "-c", READ, str(FOUND / f"{name}.yaml")]
    path = [str(ROOT), str(ROOT / "src")]
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": ":".join(path)}
    )
    assert run.returncode == 0, run.stderr.splitlines()[-1]


def test_the_process_notices_what_is_wrong(tmp_path):
    (tmp_path / "x.yaml").write_text("version: 1\n")
    broken = READ.replace("check(open", "raise AssertionError(open")
    run = subprocess.run(
        [sys.executable, "-c", broken, str(tmp_path / "x.yaml")], capture_output=True, cwd=ROOT
    )
    assert run.returncode != 0
