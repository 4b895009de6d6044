"""The fuzzer: a child process reads mutated documents, its parent notices when the child hangs or dies."""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import multiprocessing
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "build" / "fuzz"
SECONDS_PER_DOCUMENT = 10
MEMORY = 2 * 2**30
LARGEST = 200_000

Mutation = Callable[[random.Random, bytes, list[bytes]], bytes]


class Finding(AssertionError):
    """Something that must not happen, found without an exception of its own."""


class Hang(BaseException):
    """Not an Exception, so that no handler of the reader takes it for its own."""


def corpus() -> list[bytes]:
    """The documents to start from."""
    folders = (ROOT / "examples", ROOT / "tests" / "fixtures")
    return [path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.yaml"))] or [
        b"version: 1\n"
    ]


# -- what must hold -----------------------------------------------------------------------------------------


def check(data: bytes) -> None:
    """Read, resolve and plan a document; raises where the reader breaks its promises."""
    from jobman.plan.build import build
    from jobman.plan.model import plan_from_json
    from jobman.spec.load import load_jobs
    from jobman.spec.problems import Problems
    from jobman.spec.site import Site
    from jobman.spec.source import decode_source

    problems = Problems()
    source = decode_source("document.yaml", data, problems)
    jobs = load_jobs(source, Site(), problems) if source is not None else []
    check_problems(problems, source.lines if source is not None else None)
    if problems.has_errors:
        return
    for job in jobs:
        if job is None:
            raise Finding("a document without a job and without an error")
        plan = build(job)
        if plan_from_json(plan.to_json()) != plan:
            raise Finding("a plan is not read back as it was printed")


def check_problems(problems: object, lines: list[str] | None) -> None:
    from jobman.spec.codes import CODES
    from jobman.spec.problems import Problems

    assert isinstance(problems, Problems)
    for problem in problems:
        place = problem.place
        if problem.code not in CODES or not problem.message or not problem.advice:
            raise Finding(f"{problem.code} is incomplete")
        if "Node(" in problem.message + problem.advice:
            raise Finding(f"{problem.code} shows the insides of the reader")
        if place is None:
            raise Finding(f"{problem.code} has no place")
        if lines is not None and not (
            1 <= place.line <= len(lines) and 1 <= place.column <= len(lines[place.line - 1]) + 1
        ):
            raise Finding(f"{problem.code} is outside the file")
        if (place.end_line, place.end_column) < (place.line, place.column):
            raise Finding(f"{problem.code} ends before it starts")


# -- mutations ----------------------------------------------------------------------------------------------

TOKENS = [
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b": ",
        b"- ",
        b"? ",
        b"|\n",
        b">\n",
        b"'",
        b'"',
        b"#",
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!str ",
    ),
    *(
        b"---\n",
        b"...\n",
        b"\t",
        b"\r",
        b"\0",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"\xff",
        b"~",
        b"null",
    ),
    *(
        b"{{a}}",
        b"{{user.x}}",
        b"{{",
        b"group: ",
        b"depends_on: ",
        b"local: true",
        b"service: true",
        b"matrix: ",
    ),
    *(
        b"replicas: ",
        b"a&b|c",
        b"(a|b",
        b"1h30m",
        b"4Gi",
        b"1:30:00",
        b"2030-01-01",
        b"+2h",
        b"SIGUSR1",
        b"when: always",
    ),
]
NUMBERS = [
    *(
        b"0",
        b"-1",
        b"1e400",
        b"-0.0",
        b".nan",
        b".inf",
        b"0x10",
        b"0o17",
        b"1_000",
        b"1.5",
        b"true",
        b'"1"',
        "²".encode(),
    ),
    *(str(2**power + off).encode() for power in (31, 32, 53, 62, 63, 64) for off in (-1, 0)),
    b"9" * 11,
    b"9" * 400,
    b"9" * 400 + b".5G",
    b"9" * 5000,
]


def _position(chance: random.Random, data: bytes) -> int:
    return chance.randint(0, len(data))


def change_byte(chance: random.Random, data: bytes, _corpus: list[bytes]) -> bytes:
    at = _position(chance, data)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def remove_bytes(chance: random.Random, data: bytes, _corpus: list[bytes]) -> bytes:
    at = _position(chance, data)
    return data[:at] + data[at + chance.randint(1, 30) :]


def insert_token(chance: random.Random, data: bytes, _corpus: list[bytes]) -> bytes:
    at = _position(chance, data)
    return data[:at] + chance.choice(TOKENS) + data[at:]


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True) or [b""]


def change_line(chance: random.Random, data: bytes, _corpus: list[bytes]) -> bytes:
    lines = _lines(data)
    at = chance.randrange(len(lines))
    other = chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def change_indentation(chance: random.Random, data: bytes, _corpus: list[bytes]) -> bytes:
    lines = _lines(data)
    at = chance.randrange(len(lines))
    stripped = lines[at].lstrip(b" ")
    indent = max(0, len(lines[at]) - len(stripped) + chance.choice((-2, -1, 1, 2, 4)))
    lines[at] = b" " * indent + stripped
    return b"".join(lines)


def _subtree(lines: list[bytes], at: int) -> int:
    """The line behind the subtree that starts at a line."""
    indent = len(lines[at]) - len(lines[at].lstrip(b" "))
    end = at + 1
    while end < len(lines) and len(lines[end]) - len(lines[end].lstrip(b" ")) > indent:
        end += 1
    return end


def copy_subtree(chance: random.Random, data: bytes, corpus: list[bytes]) -> bytes:
    """Put a subtree, of this document or of another, somewhere else."""
    lines = _lines(data)
    others = lines if chance.random() < 0.5 else _lines(chance.choice(corpus))
    at = chance.randrange(len(others))
    target = chance.randint(0, len(lines))
    piece = others[at : _subtree(others, at)] * chance.choice((1, 1, 1, 2, 50))
    return b"".join([*lines[:target], *piece, *lines[target:]])


def _scalars(data: bytes) -> list[tuple[int, int]]:
    found = []
    for number, word in _words(data):
        if word and word not in b"[]{},:-":
            found.append((number, number + len(word)))
    return found


def _words(data: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    for at in range(len(data) + 1):
        if at == len(data) or data[at : at + 1] in b" \n[]{},:\"'":
            if at > start:
                yield start, data[start:at]
            start = at + 1


def swap_scalars(chance: random.Random, data: bytes, corpus: list[bytes]) -> bytes:
    other = chance.choice(corpus)
    here, there = _scalars(data), _scalars(other)
    if not here or not there:
        return data
    (start, end), (first, last) = chance.choice(here), chance.choice(there)
    return data[:start] + other[first:last] + data[end:]


def change_number(chance: random.Random, data: bytes, _corpus: list[bytes]) -> bytes:
    numbers = [(start, end) for start, end in _scalars(data) if data[start:end].isdigit()] or _scalars(data)
    if not numbers:
        return data
    start, end = chance.choice(numbers)
    return data[:start] + chance.choice(NUMBERS) + data[end:]


MUTATIONS: tuple[Mutation, ...] = (
    change_byte,
    remove_bytes,
    insert_token,
    change_line,
    change_indentation,
    copy_subtree,
    swap_scalars,
    change_number,
)


def mutated(chance: random.Random, corpus: list[bytes]) -> bytes:
    data = chance.choice(corpus)
    for _ in range(chance.choice((1, 1, 2, 3, 5, 8))):
        data = chance.choice(MUTATIONS)(chance, data, corpus)[:LARGEST]
    return data


# -- processes ----------------------------------------------------------------------------------------------


def _hang(_signal: int, _frame: FrameType | None) -> None:
    raise Hang


def _child(pipe: Connection, seed: int, first: int, until: float) -> None:
    """Try documents until the time is over; each is announced before it is read, in case it kills."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _hang)
    faulthandler.enable()
    documents = corpus()
    number = first
    while time.monotonic() < until:
        data = mutated(random.Random(seed * 1_000_003 + number), documents)
        pipe.send(("try", number, data))
        signal.alarm(SECONDS_PER_DOCUMENT)
        try:
            check(data)
        except (Exception, Hang) as error:
            signal.alarm(0)
            pipe.send(("found", number, data, _where(error), traceback.format_exc()))
        signal.alarm(0)
        number += 1
    pipe.send(("done", number))


def _where(error: BaseException) -> str:
    """What tells one kind of finding from another: the exception and the line it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "jobman" in frame.filename] or frames
    words = str(error) if isinstance(error, Finding) else ""
    last = ours[-1]
    return f"{type(error).__name__} {words} {Path(last.filename).name}:{last.lineno}"


def save(data: bytes, where: str, trace: str) -> Path:
    """Keep the document and its traceback; the name says what it is."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{hashlib.sha256(where.encode()).hexdigest()[:12]}.yaml"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(f"{where}\n\n{trace}", encoding="utf-8")
    return path


def fuzz(seconds: float, seed: int) -> int:
    """Run for a while; returns the number of kinds of findings."""
    until = time.monotonic() + seconds
    found: dict[str, int] = {}
    number = 0
    started = time.monotonic()
    while time.monotonic() < until:
        number = _watch(seed, number, until, found)
    spent = max(time.monotonic() - started, 0.001)
    print(f"{number} runs, {number / spent:.0f} runs/s, {len(found)} findings (seed {seed})")
    return len(found)


def _watch(seed: int, first: int, until: float, found: dict[str, int]) -> int:
    """One child until the time is over or it dies; returns the number of the next document."""
    context = multiprocessing.get_context("fork")
    pipe, other = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(other, seed, first, until))
    child.start()
    other.close()
    number, data = first, b""
    finished = False
    while pipe.poll(2 * SECONDS_PER_DOCUMENT):
        try:
            message = pipe.recv()
        except EOFError:
            break
        if message[0] == "done":
            finished = True
            number = message[1]
            break
        number, data = message[1], message[2]
        if message[0] == "found":
            _note(found, data, message[3], message[4])
    if not finished:
        child.kill()
    child.join()
    if finished:
        return number
    _note(found, data, f"the process died or hung, exit code {child.exitcode}", "")
    return number + 1


def _note(found: dict[str, int], data: bytes, where: str, trace: str) -> None:
    if where not in found:
        print(f"{where}: {save(data, where, trace)}", file=sys.stderr)
    found[where] = found.get(where, 0) + 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="the same seed tries the same documents")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    return 1 if fuzz(options.seconds, seed) else 0


if __name__ == "__main__":
    sys.exit(main())
