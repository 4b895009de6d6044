"""The loop behind the direct client: results, streams and errors come over to ordinary code."""

import asyncio
import threading

import pytest

from jobman.client import Refused, Unreachable
from jobman.client.direct_loop import LoopThread
from jobman.control.refusals import Refusal
from jobman.engines.kubernetes import errors
from jobman.engines.kubernetes.objects import Status


@pytest.fixture
def loop():
    made = LoopThread()
    yield made
    made.close(asyncio.sleep(0))


async def raising(error):
    raise error


def test_a_result_comes_over_from_the_loop(loop):
    async def name():
        return threading.current_thread().name

    assert loop.run(name()) == "jobman-direct"


def test_who_waits_too_long_is_told_when_the_work_has_tidied_up(loop):
    ended = threading.Event()

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            ended.set()

    with pytest.raises(TimeoutError):
        loop.run(work(), timeout=0.05)
    assert ended.is_set()


def test_a_stream_comes_over_whole_and_in_order(loop):
    async def numbers():
        for number in range(25_000):
            yield number

    assert list(loop.iterate(numbers())) == list(range(25_000))


def test_a_stream_that_nobody_reads_any_more_is_closed(loop):
    closed = threading.Event()

    async def for_ever():
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            closed.set()

    stream = loop.iterate(for_ever())
    assert next(stream) == 1
    stream.close()
    assert closed.wait(5)


def test_a_stream_that_breaks_says_so_behind_what_came(loop):
    async def breaking():
        yield 1
        raise errors.Unreachable("gone", "look there")

    stream = loop.iterate(breaking())
    assert next(stream) == 1
    with pytest.raises(Unreachable) as broken:
        next(stream)
    assert (broken.value.message, broken.value.advice) == ("gone", "look there")


FORBIDDEN = (
    'jobs.batch is forbidden: User "bob" cannot list resource "jobs" in API group "batch" '
    'in the namespace "lab"'
)


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (Refusal("no-such-job", "none"), "no-such-job", 1),
        (Refusal("bad-document", "wrong"), "bad-document", 3),
        (errors.ConfigError("no file"), "bad-request", 2),
        (errors.LoginError("expired"), "bad-request", 6),
        (errors.from_status(Status(code=403, message=FORBIDDEN)), "forbidden", 6),
        (errors.from_status(Status(code=403, message="exceeded quota: few")), "quota", 6),
        (errors.from_status(Status(code=401, message="who")), "unauthenticated", 6),
        (errors.from_status(Status(code=422, message="invalid")), "cannot", 4),
    ],
)
def test_an_error_of_a_cluster_becomes_a_refusal_with_its_exit_code(loop, error, code, exit_code):
    with pytest.raises(Refused) as refused:
        loop.run(raising(error))
    assert (refused.value.failure.code, refused.value.failure.exit) == (code, exit_code)


def test_who_may_not_is_given_the_whole_role_at_once(loop):
    with pytest.raises(Refused) as refused:
        loop.run(raising(errors.from_status(Status(code=403, message=FORBIDDEN))))
    advice = refused.value.failure.advice
    assert "pods/log" in advice
    assert "name: bob" in advice


def test_a_busy_server_counts_as_one_that_cannot_be_reached(loop):
    with pytest.raises(Unreachable):
        loop.run(raising(errors.from_status(Status(code=503, message="later"))))
