"""Whose rights copies have on a service that several people share."""

import asyncio
import os
import pwd
from pathlib import Path

import pytest

from jobman.control.answers import Submission
from jobman.control.director import Director
from jobman.control.refusals import Refusal
from jobman.control.store.store import Store
from jobman.engines.local.accounts import account_of
from jobman.engines.local.engine import LocalEngine
from tests.control.playing import ended

ME = pwd.getpwuid(os.geteuid()).pw_name
SOMEBODY = "daemon"
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may run copies as somebody else")
WHO = """
version: 1
tasks:
- name: who
  resources: {type: slot, count: 1}
  command: [sh, -c, "id -un; id -gn; cat SECRET 2>/dev/null || echo closed"]
"""


def test_ones_own_account_needs_no_change():
    assert account_of(ME) is None


def test_somebody_the_machine_does_not_know_cannot_run_anything():
    with pytest.raises(PermissionError, match="nobody-knows-me"):
        account_of("nobody-knows-me")


def direct(tmp_path, scene):
    async def act():
        store = Store.open(f"sqlite:///{tmp_path / 'state' / 'jobs.db'}")
        store.claim("test")
        director = Director(store, LocalEngine(tmp_path / "state", linger=1.0))
        await director.start()
        try:
            return await scene(director)
        finally:
            await director.stop()

    return asyncio.run(act())


@only_root
def test_copies_run_with_the_account_of_their_owner(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine\n")
    secret.chmod(0o600)

    async def scene(director):
        document = WHO.replace("SECRET", str(secret))
        answer = await director.submit(Submission(document=document, cwd="/"), SOMEBODY, None)
        job = await ended(director, answer.jobs[0].id)
        (record,) = [each for each in director.store.logs(job.id).items if each.stream == "stdout"]
        return job.state, Path(record.path).read_text().split()

    group = pwd.getpwnam(SOMEBODY).pw_name
    assert direct(tmp_path, scene) == ("succeeded", [SOMEBODY, group, "closed"])


@only_root
@pytest.mark.parametrize(
    "asks",
    [
        "image: busybox",
        "secrets: [licence]",
        "env_from: [{file: /etc/shadow}]",
        "security: {uid: 0}",
        "security: {capabilities: {add: [SYS_ADMIN]}}",
        "volumes: [{name: all, kind: host, path: /, to: /tmp/all}]",
    ],
)
def test_what_the_service_would_do_with_its_own_rights_is_refused_to_others(tmp_path, asks):
    async def scene(director):
        with pytest.raises(Refusal) as refused:
            await director.submit(Submission(document=f"{WHO.strip()}\n{asks}\n", cwd="/"), SOMEBODY, None)
        return refused.value.code

    assert direct(tmp_path, scene) == "cannot"


def test_environments_that_no_job_uses_are_swept_away(tmp_path):
    engine = LocalEngine(tmp_path)
    kept, old, new = (engine.keep_environment({"A": value}) for value in ("1", "2", "3"))
    for digest in (kept, old):
        os.utime(tmp_path / "environments" / digest, (1, 1))
    engine.sweep({kept})
    assert {path.name for path in (tmp_path / "environments").iterdir()} == {kept, new}


@only_root
def test_an_identity_is_the_account_of_that_name(tmp_path):
    async def scene(director):
        document = f"{WHO.strip()}\nidentity: {SOMEBODY}\n"
        answer = await director.submit(Submission(document=document, cwd="/"), ME, None)
        job = await ended(director, answer.jobs[0].id)
        (record,) = [each for each in director.store.logs(job.id).items if each.stream == "stdout"]
        return job.state, Path(record.path).read_text().split()[0]

    assert direct(tmp_path, scene) == ("succeeded", SOMEBODY)


def test_an_identity_nobody_has_is_refused(tmp_path):
    async def scene(director):
        document = f"{WHO.strip()}\nidentity: nobody-knows-me\n"
        with pytest.raises(Refusal) as refused:
            await director.submit(Submission(document=document, cwd="/"), ME, None)
        return refused.value.code

    assert direct(tmp_path, scene) == "cannot"
