"""`/v1/jobs/{ref}/sessions`: into a running copy and out again, as the client does it and by hand."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import httpx
import pytest

from jobman.client import Refused, Unreachable
from jobman.client.sessions import Session
from jobman.control import sessions as sessions_of_service
from jobman.control.answers import Copy
from tests.control.api.passages import Deaf, Flood, Machine
from tests.control.api.world import World, until

COPY = Copy(replica="main.0", attempt=1, copy=0)


@pytest.fixture
def job(world: World) -> str:
    """One that runs."""
    made = world.submit()
    world.let(world.director.begin, made)
    return made


def enter(world: World, job: str, *command: str, **more: object) -> Session:
    return world.client().enter(job, COPY, command=command, **more)  # type: ignore[arg-type]


def by_hand(world: World, job: str, *command: str) -> str:
    """The path of a session."""
    wanted = {"replica": "main.0", "command": list(command)}
    made = world.http.post(f"/v1/jobs/{job}/sessions", json=wanted)
    assert made.status_code == 201, made.text
    return f"/v1/jobs/{job}/sessions/{made.json()['id']}"


def put(world: World, path: str, number: int, text: bytes = b"", **more: object) -> httpx.Response:
    body = {"number": number, "data": base64.b64encode(text).decode(), **more}
    return world.http.post(f"{path}/input", json=body)


def events(world: World, path: str, after: int = 0) -> Iterator[list[str]]:
    """The lines of each event."""
    with world.http.stream("GET", f"{path}/output", params={"after": after}) as answer:
        assert answer.status_code == 200
        block: list[str] = []
        for line in answer.iter_lines():
            if line:
                block.append(line)
            else:
                yield block
                block = []


def test_what_goes_in_comes_out_byte_by_byte(world: World, job: str) -> None:
    session = enter(world, job, "cat")
    everything = bytes(range(256)) * 2048
    session.write(everything)
    session.end_input()
    assert b"".join(data for _, data in session.output()) == everything
    assert session.exit_code == 0


def test_the_exit_code_and_the_stream_come_back(world: World, job: str) -> None:
    session = enter(world, job, "fail")
    assert list(session.output()) == [("stderr", b"no\n")]
    assert session.exit_code == 3


def test_the_size_of_the_terminal_is_told(world: World, job: str) -> None:
    session = enter(world, job, "cat", terminal=True, size=(24, 80))
    session.resize(50, 132)
    (inside,) = world.director.host.opened
    until(lambda: inside.sizes == [(24, 80), (50, 132)])


def test_what_breaks_in_the_cluster_is_told_in_its_words(world: World, job: str) -> None:
    session = enter(world, job, "break")
    assert list(session.output()) == []
    assert (session.exit_code, session.trouble) == (None, "the cluster has gone")


def test_a_cluster_that_does_not_answer_is_told_at_once(world: World, job: str) -> None:
    with pytest.raises(Refused) as refused:
        enter(world, job, "unreachable")
    assert (refused.value.code, refused.value.exit_code) == ("engine", 5)


def test_who_leaves_is_out(world: World, job: str) -> None:
    path = by_hand(world, job, "cat")
    assert world.http.delete(path).status_code == 200
    (inside,) = world.director.host.opened
    until(lambda: inside.is_closed)
    assert put(world, path, 1, b"more").json()["code"] == "no-such-session"


def test_who_leaves_twice_is_out_and_puts_nothing_in(world: World, job: str) -> None:
    session = enter(world, job, "cat")
    session.close()
    session.close()
    session.write(b"more")
    assert list(session.output()) == []


@pytest.mark.slow
def test_a_session_ends_with_its_copy(world: World, job: str) -> None:
    session = enter(world, job, "cat")
    world.let(world.director.finish, job)
    assert list(session.output()) == []
    assert (session.exit_code, session.trouble) == (None, "the copy has ended")


def test_a_session_ends_with_the_service(world: World, job: str) -> None:
    session = enter(world, job, "cat")
    session.write(b"x")
    output = session.output()
    assert next(output) == ("stdout", b"x")
    world.let(lambda: world.desk.begin_stop(farewell=True))
    with pytest.raises(Unreachable, match="stopped"):
        next(output)


def test_after_a_restart_of_the_service_the_session_is_told_to_be_over(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        job = world.submit()
        world.let(world.director.begin, job)
        session = enter(world, job, "cat")
    with World(tmp_path) as world, pytest.raises(Unreachable, match="started again"):
        list(session.output())


def test_a_session_that_nobody_listens_to_ends(
    world: World, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_of_service, "_ALONE_SECONDS", 0.0)
    enter(world, job, "cat")
    (inside,) = world.director.host.opened
    until(lambda: inside.is_closed)


def test_a_copy_that_says_more_than_anybody_hears_has_to_wait(world: World, job: str) -> None:
    session = enter(world, job, "flood")
    (inside,) = world.director.host.opened
    assert isinstance(inside, Flood)
    until(lambda: inside.poured > 20)
    poured = [0]

    def stands_still() -> bool:
        before, poured[0] = poured[0], world.let(lambda: inside.poured)
        return before == poured[0]

    until(stands_still)
    assert poured[0] * 32 * 1024 < 2 * sessions_of_service.MUCH
    assert sum(len(data) for _, data in islice(session.output(), 500)) == 500 * 32 * 1024


def test_the_same_input_again_is_put_in_once(world: World, job: str) -> None:
    path = by_hand(world, job, "cat")
    assert [put(world, path, number, b"a").status_code for number in (1, 1, 2)] == [200] * 3
    put(world, path, 3, end=True)
    assert [block[1] for block in events(world, path)] == ["event: stdout", "event: stdout", "event: end"]


def test_input_that_a_copy_does_not_take_is_sent_again_until_it_does(
    world: World, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_of_service, "_ROOM_SECONDS", 0.0)
    path = by_hand(world, job, "deaf")
    assert [put(world, path, number, b"a").json()["inputs"] for number in (1, 2, 2)] == [1, 1, 1]
    (inside,) = world.director.host.opened
    assert isinstance(inside, Deaf)
    world.let(inside.awake.set)
    until(lambda: put(world, path, 2, b"b").json()["inputs"] == 2)
    until(lambda: put(world, path, 3, end=True).json()["inputs"] == 3)
    assert [block[1] for block in events(world, path)] == ["event: stdout", "event: stdout", "event: end"]


def test_input_with_a_gap_in_its_numbers_is_refused(world: World, job: str) -> None:
    path = by_hand(world, job, "cat")
    answer = put(world, path, 2, b"a")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")


def test_who_comes_back_goes_on_where_the_connection_broke(world: World, job: str) -> None:
    path = by_hand(world, job, "cat")
    for number in (1, 2, 3):
        put(world, path, number, str(number).encode())
    assert [block[0] for block in islice(events(world, path), 2)] == ["id: 1", "id: 2"]
    put(world, path, 4, end=True)
    assert [block[0] for block in events(world, path, after=2)] == ["id: 3", "id: 4"]


@pytest.mark.parametrize("wanted", [{"replica": "main.7"}, {"replica": "main.0", "copy": 3}])
def test_a_copy_that_does_not_run_is_refused_with_those_that_do(
    world: World, job: str, wanted: dict[str, object]
) -> None:
    answer = world.http.post(f"/v1/jobs/{job}/sessions", json=wanted)
    assert (answer.status_code, answer.json()["code"]) == (404, "no-such-copy")
    assert answer.json()["advice"] == "These do: main.0/0."


def test_one_too_many_is_refused(world: World, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_of_service, "MOST", 1)
    by_hand(world, job, "cat")
    answer = world.http.post(f"/v1/jobs/{job}/sessions", json={"replica": "main.0"})
    assert (answer.status_code, answer.json()["code"]) == (403, "quota")


def test_the_copies_of_others_cannot_be_entered(shared: World) -> None:
    job = shared.submit()
    shared.let(shared.director.begin, job)
    path = by_hand(shared, job, "cat")
    bob = shared.caller(shared.token("bob"))
    assert bob.post(f"/v1/jobs/{job}/sessions", json={"replica": "main.0"}).status_code == 404
    assert bob.get(f"{path}/output").status_code == 404


def test_an_administrator_enters_any_job_but_not_the_session_of_its_owner(shared: World) -> None:
    bob = shared.caller(shared.token("bob"))
    job = shared.submit(caller=bob)
    shared.let(shared.director.begin, job)
    made = bob.post(f"/v1/jobs/{job}/sessions", json={"replica": "main.0"}).json()
    assert shared.http.get(f"/v1/jobs/{job}/sessions/{made['id']}/output").status_code == 404
    by_hand(shared, job, "cat")


def test_a_service_whose_copies_are_on_its_machine_says_how_to_enter_them(
    world: World, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.director, "host", Machine())
    answer = world.http.post(f"/v1/jobs/{job}/sessions", json={"replica": "main.0"})
    assert (answer.status_code, answer.json()["code"]) == (422, "cannot")
    assert "jobman connect" in answer.json()["advice"]
