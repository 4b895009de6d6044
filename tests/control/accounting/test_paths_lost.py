"""A job whose owner may no longer read what it works on is stopped, on the real engine."""

import asyncio
import os
import pwd
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jobman.control.accounting.paths import unreadable
from jobman.control.admission import SettingsShelf
from jobman.control.answers import Submission
from jobman.control.director import Director
from jobman.control.store.store import Store
from jobman.engines.local.engine import LocalEngine
from tests.control.playing import ended, until

pytestmark = pytest.mark.slow

OWNER = "daemon" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
POLITE = """
version: 1
tasks:
- name: work
  resources: {type: slot, count: 1}
  command: [sh, -c, "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"]
"""


@pytest.fixture
def site():
    """A folder that everybody may enter, unlike those of tests."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def direct(site, scene):
    async def act():
        settings = site / "settings.yaml"
        settings.write_text("accounting: {slice: 1s}\n")
        store = Store.open(f"sqlite:///{site / 'jobs.db'}")
        store.claim("test")
        engine = LocalEngine(site / "state", linger=1.0)
        director = Director(store, engine, settings=SettingsShelf(str(settings)))
        await director.start()
        try:
            await scene(director)
        finally:
            await director.stop()

    asyncio.run(act())


def said(director, job):
    (record,) = [each for each in director.store.logs(job).items if each.stream == "stdout"]
    return Path(record.path).read_text().split()


def test_a_job_whose_folder_is_closed_to_its_owner_is_stopped_with_grace(site, monkeypatch):
    looks = []

    def failing_once(inspections):
        looks.append(1)
        if len(looks) == 1:
            raise OSError("the disk has a moment")
        return unreadable(inspections)

    monkeypatch.setattr("jobman.control.director.unreadable", failing_once)
    folders = [site / name for name in ("closed", "open", "gone")]
    for folder in folders:
        folder.mkdir()

    async def scene(director):
        jobs = []
        for folder in folders:
            answer = await director.submit(Submission(document=POLITE, cwd=str(folder)), OWNER, None)
            jobs.append(answer.jobs[0].id)
        lost, kept, gone = jobs
        for job in jobs:
            await until(lambda job=job: director.store.logs(job).items and said(director, job), director)
        folders[0].chmod(0)
        folders[2].rmdir()
        found = await ended(director, lost)
        assert found.state == "cancelled"
        events = director.store.events(lost)
        words = [event.message for event in events if event.kind == "permission-lost"]
        assert words == [f"{OWNER} may no longer read {folders[0]}"]
        assert said(director, lost) == ["ready", "asked"]
        # A folder that is open or gone is held against nobody.
        assert {director.store.job(job).state for job in (kept, gone)} == {"running"}
        assert len(looks) > 1
        for job in (kept, gone):
            await director.cancel(job, OWNER)
            await ended(director, job)

    try:
        direct(site, scene)
    finally:
        folders[0].chmod(0o755)
