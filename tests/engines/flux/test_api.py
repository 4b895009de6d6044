"""Bindings of Flux that are not what they should be: the command is asked instead, and nobody waits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from jobman.engines.flux.api import Bindings
from jobman.engines.flux.engine import Flux
from jobman.engines.flux.queue import EVERY
from tests.engines.flux.stand_in import StandIn

URI = "local:///nowhere/local-0"
OF_OTHERS = {
    "those of another Python": "import _flux_of_another_python\n",
    "a package that only has the name": "",
    "some that break while they load": "raise OSError('libflux-core.so.2: cannot open shared object file')\n",
    "some that take other arguments": """
        class Flux:
            def __init__(self): ...
        """,
    "some whose instance is gone": """
        class Flux:
            def __init__(self, uri): raise FileNotFoundError(2, "Unable to connect to Flux")
        """,
    "some that list other things": """
        class Flux:
            def __init__(self, uri): ...
        class JobList:
            def __init__(self, handle, **how): ...
            def fetch_jobs(self): return self
            def get_jobs(self): return [{"id": 1, "state": "RUN", "name": 7}]
        class JobID(int):
            f58plain = "f1"
        """,
}


@pytest.fixture
def bindings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where bindings would be found that this test writes, in the place of any."""
    real = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "flux"}
    for name in real:
        del sys.modules[name]
    folder = tmp_path / "bindings" / "flux" / "job"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(folder.parent.parent)
    yield folder.parent
    for name in [name for name in sys.modules if name.partition(".")[0] == "flux"]:
        del sys.modules[name]
    sys.modules.update(real)


def write(folder: Path, text: str) -> None:
    (folder / "__init__.py").write_text(dedent(text))
    (folder / "job" / "__init__.py").write_text("from flux import *\n")


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    found = StandIn(tmp_path / "stand-in")
    (found.folder / "jobs").write_text('[{"jobid": "f7", "name": "sleep", "state": "RUN"}]')
    return found


@pytest.mark.parametrize("text", OF_OTHERS.values(), ids=OF_OTHERS.keys())
def test_what_bindings_cannot_tell_the_command_does(bindings: Path, stand_in: StandIn, text: str):
    write(bindings, text)
    flux = Flux({**stand_in.environment, "FLUX_URI": URI})
    assert [job.jobid for job in flux.jobs()] == ["f7"]
    assert len(stand_in.called("jobs")) == 1


def test_what_bindings_tell_no_command_is_asked(bindings: Path, stand_in: StandIn):
    text = OF_OTHERS["some that list other things"].replace('"state": "RUN", "name": 7', '"state": 16')
    write(bindings, text)
    flux = Flux({**stand_in.environment, "FLUX_URI": URI})
    assert [(job.jobid, job.state) for job in flux.jobs()] == [("f1", "RUN")]
    assert stand_in.called("jobs") == []


def test_they_are_not_asked_where_they_would_reach_another_instance(
    bindings: Path, monkeypatch: pytest.MonkeyPatch
):
    write(bindings, "raise AssertionError('nobody should import this')\n")
    monkeypatch.setenv("FLUX_URI", URI)
    without = {name: value for name, value in os.environ.items() if name != "FLUX_URI"}
    assert Bindings(without).jobs(EVERY) is None
    assert Bindings({**without, "FLUX_URI": "ssh://elsewhere/run/flux/local"}).jobs(EVERY) is None
    assert "flux" not in sys.modules


def test_one_that_does_not_answer_is_left_alone_from_then_on(bindings: Path, tmp_path: Path):
    asked = tmp_path / "asked"
    text = f"""
        import pathlib, threading
        class Flux:
            def __init__(self, uri):
                with pathlib.Path({str(asked)!r}).open("a") as file:
                    file.write("again")
                threading.Event().wait()
        class JobList:
            pass
        """
    write(bindings, text)
    found = Bindings({"FLUX_URI": URI}, patience=0.2)
    assert [found.jobs(EVERY) for _ in range(3)] == [None] * 3
    assert asked.read_text() == "again"
