"""Output that is kept in a real object store, written there by real pods."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.client.commanding import Jobman, command, document, state_of, submitted, until
from tests.engines.kubernetes.cluster import kubectl, on_a_real_cluster

pytestmark = [on_a_real_cluster, pytest.mark.component("objects"), pytest.mark.slow]


class Bucket:
    """A bucket of the store, which is a folder here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path(os.environ["JOBMAN_LAB_OBJECTS_FOLDER"]) / name
        self.folder.mkdir()

    def url(self, path: str = "") -> str:
        return f"s3://{self.name}{path}"

    def files(self) -> dict[str, str]:
        """The text of every object by the end of its name: replica, rank and attempt."""
        return {
            path.name.partition(".")[2].removesuffix(".log"): path.read_text()
            for path in self.folder.rglob("*.log")
        }


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    made = Bucket(f"test-{secrets.token_hex(4)}")
    yield made
    shutil.rmtree(made.folder)


@pytest.fixture
def keys(namespace: str) -> str:
    """The Secret with what the store asks for."""
    key, secret = Path(os.environ["JOBMAN_LAB_OBJECTS_KEYS"]).read_text().strip().split(",")
    given = {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_ENDPOINT_URL": os.environ["JOBMAN_LAB_OBJECTS"],
    }
    words = [f"--from-literal={name}={value}" for name, value in given.items()]
    kubectl("create", "secret", "generic", "jobman-logs", "-n", namespace, *words)
    return "jobman-logs"


@pytest.fixture
def user(jobman: Jobman, tmp_path: Path) -> Jobman:
    """Somebody whose site has the image of the lab for it."""
    given = {"kubernetes": {"keep_logs": {"image": os.environ["JOBMAN_LAB_OBJECTS_IMAGE"]}}}
    settings = tmp_path / "settings.yaml"
    settings.write_text(yaml.safe_dump(given))
    return lambda *words: jobman("-s", str(settings), *words)


def test_what_a_job_wrote_is_in_the_store_when_it_is_over(user: Jobman, bucket: Bucket, keys: str) -> None:
    del keys
    script = 'echo "keys: $AWS_ACCESS_KEY_ID$AWS_SECRET_ACCESS_KEY"; echo bad >&2; exit 3'
    job = command(user, script, "--keep-logs", bucket.url("/of/ada"))
    assert user("wait", job).code == 3
    assert bucket.files() == {"0-0-1": "keys: \nbad\n"}
    assert [each.name for each in (bucket.folder / "of" / "ada").iterdir()] == [job]
    assert user("delete", job).code == 0
    assert bucket.files() == {"0-0-1": "keys: \nbad\n"}


def test_what_a_job_writes_is_in_the_store_while_it_runs_and_after_it_was_cancelled(
    user: Jobman, bucket: Bucket, keys: str
) -> None:
    del keys
    script = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    job = command(user, script, "--keep-logs", bucket.url())
    until(lambda: bucket.files() == {"0-0-1": "up\n"})
    assert user("cancel", job).code == 0
    assert user("wait", job).code == 1
    assert bucket.files() == {"0-0-1": "up\nsaved\n"}
    told = user("logs", job)
    assert f"what they wrote is in s3://{bucket.name}/{job}" in told.out + told.err


def test_every_copy_and_attempt_has_an_object_of_its_own_however_much_it_writes(
    user: Jobman, bucket: Bucket, keys: str, tmp_path: Path
) -> None:
    del keys
    script = "seq 200000; sleep 12; seq 100000; [ $JOBMAN_REPLICA$JOBMAN_ATTEMPT != 01 ]"
    written = document(tmp_path, command=["sh", "-c", script], replicas=2, restart="on-failure", grace="0s")
    job = submitted(user, "--keep-logs", bucket.url(), written)
    assert user("wait", job).code == 0, user("logs", job).err
    lines = [str(number) for top in (200000, 100000) for number in range(1, top + 1)]
    found = {name: text.split() for name, text in bucket.files().items()}
    assert sorted(found) == ["0-0-1", "0-0-2", "1-0-1"]
    assert all(text == lines for text in found.values())


def test_without_its_keys_it_does_not_start_and_why_says_so(user: Jobman, bucket: Bucket) -> None:
    job = command(user, "true", "--keep-logs", bucket.url())
    until(lambda: "jobman-logs" in user("why", job).out)
    assert state_of(user, job) == "waiting"


def test_a_store_that_takes_nothing_is_told_of_and_does_not_change_how_a_job_ends(
    user: Jobman, bucket: Bucket, keys: str
) -> None:
    del keys
    job = command(user, "echo well", "--keep-logs", f"s3://{bucket.name}-of-others/logs")
    assert user("wait", job).code == 0
    told = user("logs", job)
    assert told.out == "well\n"
    assert "keeper: " in told.err
    assert bucket.files() == {}
