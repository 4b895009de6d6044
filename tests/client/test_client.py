"""The client: typed answers, refusals as exceptions, pages that are one list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from jobman.client import Client, Refused, Unreachable
from jobman.control.answers import Details, Job, Submission
from tests.control.api.world import DOCUMENT, World, until


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    with world.client() as made:
        yield made


def submit(client: Client, name: str = "train", **more: object) -> Job:
    return client.submit(Submission(document=DOCUMENT, name=name, **more)).jobs[0]  # type: ignore[arg-type]


def test_a_job_from_its_submission_to_its_deletion(world: World, client: Client) -> None:
    job = submit(client)
    details = client.details("train")
    assert isinstance(details, Details)
    assert (details.id, details.tasks[0].name) == (job.id, "main")
    assert client.hold(job.id).held
    assert not client.release(job.id).held
    assert client.extend(job.id, 60, "main").reason == "60.0 s more"
    assert client.open_gate(job.id, "data").id == job.id
    assert client.why(job.id).position == 1
    world.let(world.director.begin, job.id)
    assert [copy.replica for copy in client.copies(job.id)] == ["main.0"]
    assert [replica.state for replica in client.replicas(job.id, state=["running"])] == ["running"]
    assert [attempt.attempt for attempt in client.attempts(job.id, replica="main.0")] == [1]
    assert client.cancel(job.id).state == "cancelled"
    assert client.delete(job.id).id == job.id
    assert list(client.jobs()) == []


def test_lists_are_read_page_by_page(client: Client) -> None:
    for number in range(7):
        submit(client, f"job{number}")
    assert [job.name for job in client.jobs(limit=3, name="job*")] == [f"job{n}" for n in range(6, -1, -1)]
    page = client.jobs_page(limit=2, state=["waiting", "running"])
    assert ([job.name for job in page.items], page.cursor is None) == (["job6", "job5"], False)


def test_finished_jobs_are_deleted_at_once(client: Client) -> None:
    for _ in range(3):
        client.cancel(submit(client).id)
    submit(client, "stays")
    assert client.delete_all(name="tr*") == 3
    assert client.delete(submit(client).id, force=True).state == "cancelled"
    assert [job.name for job in client.jobs()] == ["stays"]


def test_a_refusal_is_an_exception_with_code_and_exit_code(client: Client) -> None:
    with pytest.raises(Refused, match="no job 'zzz'") as raised:
        client.details("zzz")
    assert (raised.value.code, raised.value.status, raised.value.exit_code) == ("no-such-job", 404, 1)
    with pytest.raises(Refused) as wrong:
        client.submit(Submission(document="tasks: []"))
    assert wrong.value.exit_code == 3
    assert wrong.value.failure.problems


def test_any_reference_is_sent_as_it_is(client: Client) -> None:
    for reference in ("a/b", "a b", "ä?#%", "..", "", "a/../b"):
        with pytest.raises(Refused, match=re.escape(repr(reference))) as raised:
            client.details(reference)
        assert raised.value.code == "no-such-job"


def test_the_service_about_itself(world: World, client: Client) -> None:
    assert client.health().status == "ok"
    assert client.status().mode == "embedded"
    assert client.nodes()[0].name == "here"
    assert client.queue()[0].waiting == 0
    client.stop()
    until(lambda: world.has_ended)


def test_tokens_of_a_shared_service(tmp_path_factory: pytest.TempPathFactory) -> None:
    with World(tmp_path_factory.mktemp("shared"), shared=True) as shared, shared.client() as admin:
        made = admin.make_token("laptop", "grace")
        assert made.token.startswith("jobman_")
        assert [token.name for token in admin.tokens()] == ["admin", "laptop"]
        assert admin.revoke_token("laptop").revoked_at is not None


def test_a_wait_ends_with_the_job(world: World, client: Client) -> None:
    job = submit(client)
    found: list[Job] = []
    waiter = threading.Thread(target=lambda: found.append(client.wait("train")))
    waiter.start()
    until(lambda: len(world.director.broadcast))
    world.let(world.director.finish, job.id, "failed", 7)
    waiter.join(20)
    assert (found[0].state, found[0].exit_code) == ("failed", 7)
    assert client.wait(job.id).exit_code == 7, "one that is over is answered at once"


def test_a_wait_gives_up_in_time(client: Client) -> None:
    submit(client)
    with pytest.raises(TimeoutError):
        client.wait("train", timeout=0.05)


def test_events_and_logs_come_as_they_are_asked_for(world: World, client: Client) -> None:
    job = submit(client)
    world.let(world.director.begin, job.id)
    world.director.write(job.id, "one", "two")
    assert [line.text for line in client.logs(job.id, tail=1)] == ["two"]
    assert [event.kind for event in client.events(job.id)] == ["submitted", "started"]
    assert [event.kind for event in client.events(after=1)] == ["started"]
    world.let(world.director.finish, job.id)
    assert [line.text for line in client.logs(job.id, follow=True)] == ["one", "two"]
    kinds = [event.kind for event in client.events(job.id, follow=True)]
    assert kinds == ["submitted", "started", "succeeded"]


def test_many_threads_share_a_client(client: Client) -> None:
    threads = [threading.Thread(target=submit, args=(client, f"job{number}")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(list(client.jobs())) == 8


def test_an_address_where_nobody_listens_is_told() -> None:
    with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9 cannot be reached: connection refused"):
        Client.connect("http://127.0.0.1:9").status()
    for wrong in ("ftp://host", "https://", "https://host:port"):
        with pytest.raises(Unreachable):
            Client.connect(wrong)


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, jobman.client; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in said.stdout.split()}
    heavy = {"httpx", "pydantic", "rich", "typer", "fastapi", "uvicorn", "sqlalchemy", "asyncio", "ssl"}
    assert not loaded & (heavy | {"subprocess", "http", "email", "yaml", "logging", "dataclasses"})


def test_variables_that_are_no_text_stay_behind(client: Client) -> None:
    odd = os.fsdecode(b"caf\xe9")
    assert submit(client, environment={"GOOD": "1", "ODD": odd, odd: "1"}).name == "train"
    with pytest.raises(Refused, match="not UTF-8") as raised:
        submit(client, cwd=f"/{odd}")
    assert raised.value.exit_code == 2


def test_a_fork_leaves_the_connections_of_its_parent_alone(client: Client) -> None:
    client.health()
    child = os.fork()
    if child == 0:
        os._exit(0 if client.health().status == "ok" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.health().status == "ok"
