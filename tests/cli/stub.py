"""A small service that speaks `/v1` over a Unix socket: what the command line is tried against.

It reads documents as the real one does, and lets each job end as its script says. Nothing is run.
"""

import fnmatch
import itertools
import os
import re
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from jobman.control import administration, answers
from jobman.control.accounting.statements import Usage, UsageLine, as_csv
from jobman.control.calendars import Calendars
from jobman.control.refusals import Refusal
from jobman.control.switches import Switches, standing
from jobman.plan.nodes import ClusterNode
from jobman.sched.scheduling import DEFAULT_QUEUES

NOW = 1_800_000_000.0
NODES = [ClusterNode(name=name, amounts={"core": 4}) for name in ("n1", "n2", "n3", "gpu1")]


class Script:
    """What becomes of a job: its output, its end, and what is known of its replicas and attempts."""

    def __init__(
        self,
        lines=(),
        *,
        state="succeeded",
        exit_code=0,
        seconds=2.0,
        outcomes=None,
        counts=None,
        attempts=(),
        replicas=(),
        reason="",
        endless=False,
        on_line=None,
        warnings=(),
        notes=(),
    ):
        self.lines = _placed(lines)
        self.state = state
        self.exit_code = exit_code
        self.seconds = seconds
        self.outcomes = outcomes or {}
        self.counts = counts or {}
        self.attempts = list(attempts)
        self.replicas = list(replicas)
        self.reason = reason
        self.endless = endless
        self.on_line = on_line
        """Called with the job and the number of a line before it is sent to somebody who follows."""
        self.warnings = list(warnings)
        self.notes = list(notes)


def _placed(lines):
    """Lines with the offsets that they would have in the files of their copies."""
    ends: dict[tuple[str, int, int, str], int] = {}
    for one in lines:
        source = (one.replica, one.attempt, one.copy, one.stream)
        one.end = one.end or ends.get(source, 0) + len(one.text.encode()) + (not one.partial)
        ends[source] = one.end
    return list(lines)


class StubJob:
    """A job, and all that can be asked about it."""

    def __init__(self, details, script=None):
        self.details = details
        self.script = script or Script()
        self.events = []
        self.why = None
        self.copies = []
        self.most = None
        """The most seconds by which it may be extended."""

    def end(self):
        """Take the state that the script has for it."""
        script, details = self.script, self.details
        if script.endless or details.state in answers.FINAL_STATES:
            return
        details.state, details.exit_code, details.reason = script.state, script.exit_code, script.reason
        details.ended_at = (details.started_at or details.submitted_at) + script.seconds
        for task in details.tasks:
            task.outcome = script.outcomes.get(task.unit, script.state)
            task.counts = script.counts.get(task.unit, {task.outcome: task.replicas})
        totals: dict[str, int] = {}
        for task in details.tasks:
            for state, count in task.counts.items():
                totals[state] = totals.get(state, 0) + count
        details.counts = totals


def line(
    text, replica="hello.0", *, stream="stdout", copy=0, at=0.0, partial=False, attempt=1, node="", end=0
):
    return answers.LogLine(
        at=NOW + at,
        replica=replica,
        attempt=attempt,
        copy=copy,
        node=node,
        stream=stream,
        text=text,
        partial=partial,
        end=end,
    )


def make_job(name="hello", state="running", *, identity=None, tasks=None, submitted_at=None, **fields):
    """A job as the service would answer it."""
    fields.setdefault("started_at", None if state == "waiting" else (submitted_at or NOW) + 1)
    return answers.Details(
        id=identity or f"{name.ljust(4, 'x')[:4]}0001",
        name=name,
        owner=fields.pop("owner", "ada"),
        state=state,
        submitted_at=NOW if submitted_at is None else submitted_at,
        tasks=[answers.Task(unit=name, name=name)] if tasks is None else tasks,
        **fields,
    )


class Stub:
    """The service: its jobs by id, its nodes and its queue. `requests` remembers what was asked."""

    def __init__(self):
        self.jobs = {}
        self.scripts = {}
        self.estimates = {}
        """By the name of a job, what is said about its start."""
        self.nodes = []
        self.queue = []
        self.usage = Usage(by="account", total=UsageLine())
        self.tokens = {}
        self.calendars = Calendars()
        self.switches = Switches()
        self.requests = []
        self.submissions = []
        self.keys = {}
        self.refusal = None
        self.stopped = False
        self._numbers = itertools.count(1)
        self.status = answers.Status(
            version="0.1.0",
            pid=os.getpid(),
            mode="embedded",
            since=NOW,
            database="sqlite:///jobman.db",
            folder="/tmp/state",
            socket="/tmp/state/service.sock",
        )

    def add(self, details, script=None, **more):
        """Put a job into the service."""
        job = self.jobs[details.id] = StubJob(details, script)
        for name, value in more.items():
            setattr(job, name, value)
        return job

    def find(self, reference):
        """A job by id, unique start of an id, or name: the newest of that name."""
        named = [job for job in self.jobs.values() if job.details.name == reference]
        if reference in self.jobs:
            return self.jobs[reference]
        if named:
            return max(named, key=lambda job: job.details.submitted_at)
        matching = [job for key, job in self.jobs.items() if key.startswith(reference)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise Refusal(
                "ambiguous", f"{reference} is the start of {len(matching)} jobs", "write more of it"
            )
        raise Refusal("no-such-job", f"there is no job {reference}", "`jobman list` shows yours")

    # -- submitting -------------------------------------------------------------------------------------

    def submit(self, submission, key):
        """Read the document as the real service does, and make its jobs."""
        self.submissions.append(submission)
        if key in self.keys:
            return 200, msgspec.structs.replace(self.keys[key], replayed=True)
        if submission.rerun_of is not None:
            before = self.find(submission.rerun_of).details
            submission = msgspec.structs.replace(submission, document=before.document, file=before.name)
        specs = self._read(submission)
        made = [self._make(spec, submission) for spec in specs]
        estimates = [self._estimate(job) for job, _ in made if job.name in self.estimates]
        if submission.dry_run:
            return 200, answers.Submitted(jobs=[_glance(job) for job, _ in made])
        if submission.what_if:
            jobs = [_glance(job) for job, _ in made]
            return 200, answers.Submitted(jobs=jobs, estimates=estimates, notes=["nothing was submitted"])
        for details, script in made:
            self.add(details, script)
        answer = answers.Submitted(
            jobs=[_glance(job) for job, _ in made],
            warnings=[msgspec.to_builtins(p) for p in specs[0].problems],
            notes=[note for _, script in made for note in script.notes],
            estimates=estimates,
        )
        self.keys[key] = answer
        return 201, answer

    def _estimate(self, job):
        return msgspec.structs.replace(self.estimates[job.name], job=job.id)

    def _read(self, submission):
        from jobman.api import load_source
        from jobman.settings import load_settings
        from jobman.settings.load import Settings, _lay_source
        from jobman.spec.problems import Problems, SpecError
        from jobman.spec.source import Source

        if submission.settings is None:
            settings = load_settings()
        else:
            settings = Settings()
            name = submission.settings_file or "settings"
            try:
                _lay_source(settings, Source(name, submission.settings), name, Problems())
            except SpecError as error:
                found = [msgspec.to_builtins(p) for p in error.problems]
                raise Refusal("bad-settings", "the settings are wrong", problems=found) from error
        specs = load_source(
            Source(submission.file, submission.document), settings=settings, parameters=submission.parameters
        )
        if not all(spec.ok for spec in specs):
            found = [msgspec.to_builtins(p) for p in specs[0].problems]
            raise Refusal("bad-document", "the document is wrong", problems=found)
        return specs

    def _make(self, spec, submission):
        plan = spec.plan()
        number = next(self._numbers)
        name = submission.name or plan.name or "job"
        tasks = [
            answers.Task(
                unit=unit.id,
                name=unit.name,
                kind=unit.kind,
                scope="" if unit.parent is None else f"{unit.parent}.0",
                replicas=unit.replicas,
                service=bool(unit.policies.service) if hasattr(unit.policies, "service") else False,
                line=unit.line,
            )
            for unit in plan.units
        ]
        details = make_job(
            name,
            identity=f"{number:04x}beef",
            tasks=tasks,
            held=submission.hold,
            document=submission.document,
            state="waiting" if submission.hold else "running",
            counts={"waiting": sum(task.replicas for task in tasks if task.kind == "task")},
            options={
                k: v
                for k, v in {
                    "parameters": submission.parameters,
                    "virtual": submission.virtual,
                    "no_container": submission.no_container,
                }.items()
                if v
            },
            cwd=submission.cwd or "",
        )
        return details, self.scripts.get(name, Script())


def _glance(details):
    return msgspec.convert(msgspec.to_builtins(details), answers.Job)


# -- HTTP ---------------------------------------------------------------------------------------------------


class Asked(dict[str, str]):
    """The query of a request; `all` gives every value of a repeated name."""

    def __init__(self, query):
        self.pairs = parse_qsl(query)
        super().__init__(self.pairs)

    def all(self, name):
        return [value for key, value in self.pairs if key == name]


ROUTES: list[tuple[str, re.Pattern[str], Callable[..., Any]]] = []


def route(method, pattern):
    def declare(function):
        ROUTES.append((method, re.compile(pattern + r"\Z"), function))
        return function

    return declare


@route("POST", "/v1/jobs")
def _submit(stub, asked, body, headers):
    return stub.submit(msgspec.json.decode(body, type=answers.Submission), headers.get("Idempotency-Key"))


@route("GET", "/v1/jobs")
def _list(stub, asked, body, headers):
    found = sorted((job.details for job in stub.jobs.values()), key=lambda job: -job.submitted_at)
    states, labels = asked.all("state"), [text.partition("=")[::2] for text in asked.all("label")]
    if asked.get("mine", "") == "true":
        found = [job for job in found if job.owner == "ada"]
    if states:
        found = [job for job in found if job.state in states]
    if "name" in asked:
        found = [job for job in found if fnmatch.fnmatchcase(job.name, asked["name"])]
    if "since" in asked:
        found = [job for job in found if job.submitted_at >= float(asked["since"])]
    found = [job for job in found if all(job.labels.get(key) == value for key, value in labels)]
    return 200, _page([_glance(job) for job in found], asked)


@route("DELETE", "/v1/jobs")
def _delete_all(stub, asked, body, headers):
    states = asked.all("state") or answers.FINAL_STATES
    gone = [key for key, job in stub.jobs.items() if job.details.state in states]
    for key in gone:
        del stub.jobs[key]
    return 200, answers.Deleted(deleted=len(gone))


@route("GET", "/v1/jobs/([^/]+)")
def _details(stub, asked, body, headers, reference):
    return 200, stub.find(reference).details


@route("DELETE", "/v1/jobs/([^/]+)")
def _delete(stub, asked, body, headers, reference):
    job = stub.find(reference).details
    if job.state not in answers.FINAL_STATES and asked.get("force", "") != "true":
        raise Refusal("wrong-state", f"{job.name} is {job.state}", "add --force to cancel it first")
    del stub.jobs[job.id]
    return 200, _glance(job)


@route("POST", "/v1/jobs/([^/]+)/(cancel|hold|release)")
def _act(stub, asked, body, headers, reference, act):
    job = stub.find(reference).details
    if job.state in answers.FINAL_STATES:
        raise Refusal("wrong-state", f"{job.name} has {job.state} already")
    if act == "cancel":
        job.state, job.exit_code, job.ended_at = "cancelled", None, NOW + 5
    else:
        job.held = act == "hold"
    return 200, _glance(job)


@route("POST", "/v1/jobs/([^/]+)/extend")
def _extend(stub, asked, body, headers, reference):
    wanted = msgspec.json.decode(body, type=answers.Extension)
    job = stub.find(reference)
    if job.most is not None and wanted.seconds > job.most:
        offer = f"jobman extend {job.details.id} +{job.most}s" + (
            f" --task {wanted.task}" * bool(wanted.task)
        )
        advice = f"{offer} would be granted" if job.most else "try again later"
        words = "somebody else was promised these nodes by then"
        raise Refusal("would-delay", words, advice, largest=float(job.most))
    job.extended = (wanted.seconds, wanted.task)
    return 200, _glance(job.details)


@route("POST", "/v1/jobs/([^/]+)/gates/([^/]+)/open")
def _open(stub, asked, body, headers, reference, gate):
    job = stub.find(reference).details
    if gate not in job.gates:
        raise Refusal(
            "no-such-gate", f"{job.name} has no gate {gate}", f"it has {', '.join(job.gates) or 'none'}"
        )
    job.gates[gate] = True
    return 200, _glance(job)


@route("GET", "/v1/jobs/([^/]+)/replicas")
def _replicas(stub, asked, body, headers, reference):
    found = stub.find(reference).script.replicas
    found = [
        r for r in found if asked.get("state", r.state) == r.state and asked.get("unit", r.unit) == r.unit
    ]
    return 200, _page(found, asked)


@route("GET", "/v1/jobs/([^/]+)/attempts")
def _attempts(stub, asked, body, headers, reference):
    found = stub.find(reference).script.attempts
    return 200, _page([a for a in found if asked.get("replica", a.replica) == a.replica], asked)


@route("GET", "/v1/jobs/([^/]+)/events")
def _events(stub, asked, body, headers, reference):
    job = stub.find(reference)
    after = int(headers.get("Last-Event-ID") or asked.get("after") or asked.get("cursor") or 0)
    found = [event for event in job.events if event.number > after]
    return 200, Events(found, job) if asked.get("follow") == "true" else _page(found, asked | {"cursor": 0})


@route("GET", "/v1/jobs/([^/]+)/why")
def _why(stub, asked, body, headers, reference):
    job = stub.find(reference)
    return 200, job.why or answers.Why(job=job.details.id, state=job.details.state, summary="it runs")


@route("GET", "/v1/jobs/([^/]+)/copies")
def _copies(stub, asked, body, headers, reference):
    return 200, answers.Listing(items=stub.find(reference).copies)


@route("GET", "/v1/jobs/([^/]+)/logs")
def _logs(stub, asked, body, headers, reference):
    job = stub.find(reference)
    return 200, Lines(stub, job, _chosen(job.script.lines, asked), asked)


@route("GET", "/v1/nodes")
def _nodes(stub, asked, body, headers):
    return 200, answers.Listing(items=stub.nodes)


@route("GET", "/v1/queue")
def _queue(stub, asked, body, headers):
    return 200, answers.Listing(items=stub.queue)


@route("GET", "/v1/queues")
def _queues(stub, asked, body, headers):
    return 200, answers.Listing(items=stub.switches.infos(DEFAULT_QUEUES))


@route("POST", "/v1/queues/([^/]+)/state")
def _switch_queue(stub, asked, body, headers, name):
    wanted = msgspec.json.decode(body, type=administration.NewQueueState)
    record = stub.switches.switch_queue(name, wanted.state, wanted.reason, "ada", NOW, DEFAULT_QUEUES)
    stub.switches.keep_queue(record)
    return 200, standing(record)


@route("POST", "/v1/nodes/([^/]+)/state")
def _switch_node(stub, asked, body, headers, name):
    wanted = msgspec.json.decode(body, type=administration.NewNodeState)
    names = [node.name for node in NODES]
    record = stub.switches.switch_node(name, wanted.state, wanted.reason, "ada", NOW, names)
    stub.switches.keep_node(record)
    return 200, standing(record)


@route("GET", "/v1/calendar")
def _calendar(stub, asked, body, headers):
    found = stub.calendars.entries(time.time())
    return 200, answers.Listing(items=[each for each in found if asked.get("kind", each.kind) == each.kind])


@route("POST", "/v1/calendar")
def _add_entry(stub, asked, body, headers):
    wanted = msgspec.json.decode(body, type=administration.NewEntry)
    record, notes = stub.calendars.admit(wanted, "ada", time.time(), NODES)
    stub.calendars.keep(record)
    return 201, stub.calendars.entry(record, time.time(), notes)


@route("DELETE", "/v1/calendar/([^/]+)")
def _remove_entry(stub, asked, body, headers, name):
    record = stub.calendars.find(name, asked.get("kind"))
    stub.calendars.drop(name)
    return 200, stub.calendars.entry(record, time.time())


@route("GET", "/v1/usage")
def _usage(stub, asked, body, headers):
    if asked.get("format") == "csv":
        return 200, Csv(stub.usage)
    return 200, stub.usage


@route("GET", "/v1/status")
def _status(stub, asked, body, headers):
    return 200, stub.status


@route("GET", "/v1/health")
def _health(stub, asked, body, headers):
    return 200, answers.Health(status="ok", version=stub.status.version)


@route("POST", "/v1/stop")
def _stop(stub, asked, body, headers):
    stub.stopped = True
    return 200, answers.Health(status="ok", version=stub.status.version)


@route("GET", "/v1/tokens")
def _tokens(stub, asked, body, headers):
    return 200, answers.Listing(items=list(stub.tokens.values()))


@route("POST", "/v1/tokens")
def _add_token(stub, asked, body, headers):
    wanted = msgspec.json.decode(body, type=answers.NewToken)
    token = answers.Token(name=wanted.name, user=wanted.user, role=wanted.role, created_at=NOW)
    stub.tokens[wanted.name] = token
    return 201, answers.TokenMade(**msgspec.structs.asdict(token), token="secret-once")


@route("DELETE", "/v1/tokens/([^/]+)")
def _revoke(stub, asked, body, headers, name):
    if name not in stub.tokens:
        raise Refusal("no-such-token", f"there is no token {name}")
    stub.tokens[name].revoked_at = NOW
    return 200, stub.tokens[name]


def _page(items, asked):
    start, limit = int(asked.get("cursor", 0)), int(asked.get("limit", 100))
    more = start + limit < len(items)
    return answers.Page(items=items[start : start + limit], cursor=str(start + limit) if more else None)


def _chosen(lines, asked):
    """The lines that a request asks for."""
    for name, value in asked.items():
        if name == "stream":
            lines = [one for one in lines if one.stream == value]
        elif name == "task":
            lines = [one for one in lines if one.replica.rpartition("/")[2].rpartition(".")[0] == value]
        elif name == "replica":
            lines = [one for one in lines if value in (one.replica, one.replica.rpartition(".")[2])]
        elif name == "attempt":
            lines = [one for one in lines if str(one.attempt) == value]
        elif name == "node":
            lines = [one for one in lines if one.node == value]
        elif name == "since":
            lines = [one for one in lines if one.at >= float(value)]
    tail = int(asked.get("tail", len(lines)))
    return lines[len(lines) - min(tail, len(lines)) :]


class Csv:
    """A statement for spreadsheets."""

    media = "text/csv"

    def __init__(self, usage):
        self._usage = usage

    def parts(self):
        yield as_csv(self._usage).encode()


class Lines:
    """Lines of output, streamed: to the end of the job where they are followed."""

    def __init__(self, stub, job, lines, asked):
        self._job = job
        self._lines = lines
        self._follow = asked.get("follow", "") == "true"
        self.media = "text/event-stream" if self._follow else "application/x-ndjson"

    def parts(self):
        if not self._follow:
            yield from (msgspec.json.encode(one) + b"\n" for one in self._lines)
            return
        for number, one in enumerate(self._lines, 1):
            if self._job.script.on_line is not None:
                self._job.script.on_line(self._job.details, number)
            yield f"event: line\nid: {number}\ndata: ".encode() + msgspec.json.encode(one) + b"\n\n"
        while self._job.script.endless and self._job.details.state not in answers.FINAL_STATES:
            yield b": still here\n\n"
            time.sleep(0.05)
        self._job.end()
        yield b"event: end\ndata: {}\n\n"


class Events:
    """Events, streamed, and the end of the stream behind them."""

    media = "text/event-stream"

    def __init__(self, events, job):
        self._events = events
        self._job = job

    def parts(self):
        for event in self._events:
            yield f"event: event\nid: {event.number}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n"
        while self._job.script.endless and self._job.details.state not in answers.FINAL_STATES:
            yield b": still here\n\n"
            time.sleep(0.05)
        self._job.end()
        yield b"event: end\ndata: " + msgspec.json.encode(_glance(self._job.details)) + b"\n\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        stub = cast(Server, self.server).stub
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        stub.requests.append(f"{self.command} {self.path}")
        try:
            status, answer = self._find(stub, target, body)
        except Refusal as refusal:
            status = refusal.status
            answer = answers.Failure(
                code=refusal.code,
                message=refusal.message,
                advice=refusal.advice,
                exit=refusal.exit_code,
                largest=refusal.largest,
                problems=refusal.problems,
                request="req-1",
            )
        if hasattr(answer, "parts"):
            self._stream(answer)
        else:
            self._send(status, msgspec.json.encode(answer))

    do_GET = do_POST = do_DELETE = _answer

    def _find(self, stub, target, body):
        if stub.refusal is not None:
            raise stub.refusal
        for method, pattern, function in ROUTES:
            match = pattern.match(target.path)
            if match and method == self.command:
                return function(stub, Asked(target.query), body, self.headers, *map(unquote, match.groups()))
        raise Refusal("no-such-path", f"there is no {target.path}")

    def _send(self, status, data):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer):
        self.send_response(200)
        self.send_header("Content-Type", answer.media)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for part in answer.parts():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def address_string(self):
        return "stub"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
    stub: Any

    def handle_error(self, request, client_address):
        """A command that was ended in the midst of an answer is none of our troubles."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(stub, socket):
    """Listen at a socket until the server is shut down; returns the server."""
    Path(socket).parent.mkdir(parents=True, exist_ok=True)
    Path(socket).unlink(missing_ok=True)
    server = Server(str(socket), Handler)
    Path(socket).chmod(0o600)
    server.stub = stub
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server
