"""The client: one method per thing that can be asked of a service, with typed answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from jobman.client.failures import Refused, Unreachable
from jobman.client.following import follow_events, follow_logs
from jobman.client.link import EmbeddedLink, Link, TcpLink
from jobman.client.targets import query_string, quoted
from jobman.control.answers import (
    FINAL_STATES,
    Attempt,
    Copy,
    Deleted,
    Details,
    Event,
    Extension,
    Failure,
    Health,
    Job,
    Listing,
    LogLine,
    NewToken,
    Node,
    Page,
    QueueRow,
    Replica,
    Role,
    Status,
    Submission,
    Submitted,
    Token,
    TokenMade,
    Why,
)
from jobman.control.embedded import SERVING
from jobman.control.places import Places

if TYPE_CHECKING:
    from jobman.client.direct_loop import Begun
    from jobman.client.sessions import Session
    from jobman.control.accounting.statements import Usage

    # Only those who administer need these bodies; the others should not wait for them.
    from jobman.control.administration import (
        CalendarEntry,
        CalendarKind,
        NewEntry,
        NodeStateName,
        QueueInfo,
        QueueStateName,
        Standing,
    )
    from jobman.engines.kubernetes.sight import Sight

T = TypeVar("T")
_PAGE = 1000
_LIST = "jobman list shows those there are."
Filters = str | int | float | bool | Iterable[str] | None
"""What may stand behind the name of a filter; None leaves it out."""


class Client:
    """Speaks to one service. May be used from several threads at once."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @classmethod
    def embedded(
        cls, places: Places | None = None, *, start: bool = True, program: Sequence[str] = SERVING
    ) -> Client:
        """The client of this user's own service; unless `start` is false it is started when it is needed."""
        return cls(EmbeddedLink(places, start=start, program=program))

    @classmethod
    def connect(cls, url: str, token: str | None = None, *, ca_file: str | None = None) -> Client:
        """The client of a shared service at `https://HOST:PORT`."""
        return cls(TcpLink(url, token, ca_file))

    @classmethod
    def usual(cls) -> Client:
        """The client that the environment asks for: JOBMAN_SERVER, or this user's own service."""
        url = os.environ.get("JOBMAN_SERVER")
        return cls.connect(url, usual_token()) if url else cls.embedded()

    def close(self) -> None:
        """Close the connections."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- jobs ------------------------------------------------------------------------------------------

    def submit(self, submission: Submission, *, key: str | None = None, driven: bool = False) -> Submitted:
        """Submit a document. It is submitted once, whatever happens to the connection.

        `driven` says that the caller will `drive` jobs that need it; a service leads its own.
        """
        del driven
        headers = {"Idempotency-Key": key or os.urandom(16).hex()}
        return self._ask("POST", "/v1/jobs", Submitted, body=_encoded(submission), headers=headers, safe=True)

    def drive(self, ref: str, *, waiting: Callable[[str], None] | None = None) -> Begun[Any] | None:
        """Drive a job from here where nobody else does it; None where nobody has to.

        `waiting` is told of somebody who may still drive it, while we wait to see.
        """
        del ref, waiting
        return None

    def jobs(self, **filters: Filters) -> Iterator[Job]:
        """Jobs, the newest first. Filters: owner, mine, state, name, label, queue, since, until, search."""
        return self._items("/v1/jobs", Page[Job], filters)

    def jobs_page(self, *, limit: int = 100, cursor: str | None = None, **filters: Filters) -> Page[Job]:
        """One page of jobs."""
        return self._ask("GET", "/v1/jobs", Page[Job], query={**filters, "limit": limit, "cursor": cursor})

    def details(self, ref: str) -> Details:
        """Everything about a job. `ref` is an id, the start of one, or a name."""
        return self._ask("GET", _path(ref), Details)

    def delete(self, ref: str, *, force: bool = False) -> Job:
        """Delete a finished job; with `force` it is cancelled first."""
        return self._ask("DELETE", _path(ref), Job, query={"force": force}, patience=120.0)

    def delete_all(self, **filters: Filters) -> int:
        """Delete all finished jobs that fit; filters as for `jobs`."""
        query = {**filters, "all": True}
        return self._ask("DELETE", "/v1/jobs", Deleted, query=query, patience=600.0).deleted

    def cancel(self, ref: str) -> Job:
        """Stop a job for good."""
        return self._ask("POST", _path(ref, "cancel"), Job, safe=True)

    def hold(self, ref: str) -> Job:
        """Keep a job from starting, or suspend it."""
        return self._ask("POST", _path(ref, "hold"), Job, safe=True)

    def release(self, ref: str) -> Job:
        """Let a job that is held go on."""
        return self._ask("POST", _path(ref, "release"), Job, safe=True)

    def extend(self, ref: str, seconds: float, task: str | None = None) -> Job:
        """Give a job, or one task of it, more time."""
        body = msgspec.json.encode(Extension(seconds=seconds, task=task))
        return self._ask("POST", _path(ref, "extend"), Job, body=body)

    def open_gate(self, ref: str, gate: str) -> Job:
        """Open a gate that a job waits for."""
        return self._ask("POST", _path(ref, "gates", gate, "open"), Job, safe=True)

    def replicas(self, ref: str, **filters: Filters) -> Iterator[Replica]:
        """Replicas of a job. Filters: unit, state."""
        return self._items(_path(ref, "replicas"), Page[Replica], filters)

    def attempts(self, ref: str, **filters: Filters) -> Iterator[Attempt]:
        """Attempts of a job. Filter: replica."""
        return self._items(_path(ref, "attempts"), Page[Attempt], filters)

    def why(self, ref: str) -> Why:
        """Why a job is where it is."""
        return self._ask("GET", _path(ref, "why"), Why)

    def copies(self, ref: str) -> list[Copy]:
        """The copies of a job that run now."""
        return self._ask("GET", _path(ref, "copies"), Listing[Copy]).items

    def enter(
        self,
        ref: str,
        copy: Copy,
        *,
        command: Sequence[str] = (),
        port: int | None = None,
        terminal: bool = False,
        size: tuple[int, int] = (0, 0),
    ) -> Session:
        """Run a command beside a copy (a shell where there is none), or connect to a port of it."""
        from jobman.client import sessions
        from jobman.control import entering

        wanted = entering.NewSession(
            replica=copy.replica,
            copy=copy.copy,
            command=list(command) or ["sh"],
            port=port,
            terminal=terminal,
            rows=size[0],
            columns=size[1],
        )
        body = msgspec.json.encode(wanted)
        made = self._ask("POST", _path(ref, "sessions"), entering.Session, body=body)
        return sessions.ServiceSession(self._link, _path(made.job, "sessions", made.id))

    # -- following -------------------------------------------------------------------------------------

    def logs(self, ref: str, *, follow: bool = False, **filters: Filters) -> Iterator[LogLine]:
        """Lines that copies of a job wrote. Filters: tail, since, task, replica, node, attempt, stream.

        Followed, they end when the job is over. A connection that breaks is made again, and no line is lost.
        """
        return follow_logs(self._link, _path(ref, "logs"), filters, follow=follow)

    def events(
        self, ref: str | None = None, *, follow: bool = False, after: int | None = None
    ) -> Iterator[Event]:
        """What happened to a job, or to all one may see.

        Followed, the events of a job begin with the first and end when it is over; those of all jobs begin
        now and have no end.
        """
        path = "/v1/events" if ref is None else _path(ref, "events")
        if not follow:
            return self._items(path, Page[Event], {"after": after})
        return (sent for sent in follow_events(self._link, path, after) if isinstance(sent, Event))

    def wait(self, ref: str, timeout: float | None = None) -> Job:
        """Wait for the end of a job; raises TimeoutError."""
        job = self.details(ref)
        if job.state in FINAL_STATES:
            return _at_a_glance(job)
        for sent in follow_events(self._link, _path(job.id, "events"), None, timeout=timeout):
            if isinstance(sent, Job):
                return sent
        raise Unreachable("The service ended before the job did.")

    # -- cluster, service, tokens ----------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """The nodes and how much of each is in use."""
        return self._ask("GET", "/v1/nodes", Listing[Node]).items

    def queue(self) -> list[QueueRow]:
        """How many jobs wait and run, by what they ask for."""
        return self._ask("GET", "/v1/queue", Listing[QueueRow]).items

    def queue_in_sight(self) -> tuple[list[QueueRow], Sight | None]:
        """The same, and the namespaces it was counted in where those are not all there are."""
        return self.queue(), None

    def queues(self) -> list[QueueInfo]:
        """The queues, and whether they are open."""
        from jobman.control.administration import QueueInfo

        return self._ask("GET", "/v1/queues", Listing[QueueInfo]).items

    def set_queue_state(self, name: str, state: QueueStateName, reason: str = "") -> Standing:
        """Open, drain or close a queue."""
        from jobman.control.administration import NewQueueState, Standing

        body = msgspec.json.encode(NewQueueState(state=state, reason=reason))
        return self._ask("POST", quoted("/v1/queues", name, "state"), Standing, body=body, safe=True)

    def set_node_state(self, name: str, state: NodeStateName, reason: str = "") -> Standing:
        """Drain a node, or use it again."""
        from jobman.control.administration import NewNodeState, Standing

        body = msgspec.json.encode(NewNodeState(state=state, reason=reason))
        return self._ask("POST", quoted("/v1/nodes", name, "state"), Standing, body=body, safe=True)

    def calendar(self, kind: CalendarKind | None = None) -> list[CalendarEntry]:
        """Windows of maintenance and reservations, or those of one kind."""
        from jobman.control.administration import CalendarEntry

        return self._ask("GET", "/v1/calendar", Listing[CalendarEntry], query={"kind": kind}).items

    def add_calendar(self, wanted: NewEntry) -> CalendarEntry:
        """Add a window of maintenance or a reservation."""
        from jobman.control.administration import CalendarEntry

        return self._ask("POST", "/v1/calendar", CalendarEntry, body=msgspec.json.encode(wanted))

    def remove_calendar(self, name: str, kind: CalendarKind | None = None) -> CalendarEntry:
        """Take a window or a reservation away."""
        from jobman.control.administration import CalendarEntry

        return self._ask("DELETE", quoted("/v1/calendar", name), CalendarEntry, query={"kind": kind})

    def usage(self, **filters: Filters) -> Usage:
        """What was used and charged. Filters: account, user, since, until, by, limit."""
        from jobman.control.accounting.statements import Usage

        return self._ask("GET", "/v1/usage", Usage, query=filters)

    def usage_csv(self, **filters: Filters) -> str:
        """The same as CSV."""
        target = "/v1/usage" + query_string({**filters, "format": "csv"})
        return self._link.ask("GET", target, body=None, headers={}, safe=True, patience=60.0).decode()

    def status(self) -> Status:
        """What the service is and how it fares."""
        return self._ask("GET", "/v1/status", Status)

    def health(self) -> Health:
        """Whether the service answers and can work."""
        return self._ask("GET", "/v1/health", Health)

    def stop(self, *, force: bool = False) -> Health:
        """Stop the service; copies that run go on."""
        return self._ask("POST", "/v1/stop", Health, query={"force": force})

    def make_token(self, name: str, user: str, role: Role = "user") -> TokenMade:
        """Make a token of a shared service."""
        body = msgspec.json.encode(NewToken(name=name, user=user, role=role))
        return self._ask("POST", "/v1/tokens", TokenMade, body=body)

    def tokens(self) -> list[Token]:
        """The tokens of a shared service."""
        return self._ask("GET", "/v1/tokens", Listing[Token]).items

    def revoke_token(self, name: str) -> Token:
        """Revoke a token of a shared service."""
        return self._ask("DELETE", quoted("/v1/tokens", name), Token)

    # -- on the way ------------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        query: dict[str, Any] | None = None,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        safe: bool = False,
        patience: float = 60.0,
    ) -> T:
        data = self._link.ask(
            method,
            path + query_string(query or {}),
            body=body,
            headers=headers or {},
            safe=safe or method == "GET",
            patience=patience,
        )
        return msgspec.json.decode(data, type=answer)

    def _items(self, path: str, answer: type[Page[T]], filters: dict[str, Any]) -> Iterator[T]:
        cursor = None
        while True:
            page = self._ask("GET", path, answer, query={"limit": _PAGE, **filters, "cursor": cursor})
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return


def usual_token() -> str | None:
    """The token of this user: JOBMAN_TOKEN, or what is in ~/.jobman/token."""
    if token := os.environ.get("JOBMAN_TOKEN"):
        return token.strip()
    try:
        return (Path.home() / ".jobman" / "token").read_text().strip() or None
    except (OSError, RuntimeError):
        return None


def _encoded(submission: Submission) -> bytes:
    """As JSON. Variables whose values are no text cannot travel, and stay behind."""
    try:
        return msgspec.json.encode(submission)
    except UnicodeEncodeError:
        environment = submission.environment or {}
    usable = {name: value for name, value in environment.items() if _is_text(name + value)}
    try:
        return msgspec.json.encode(msgspec.structs.replace(submission, environment=usable))
    except UnicodeEncodeError as error:
        words = f"Something in the submission is not UTF-8: {error.object!r}."
        raise Refused(400, Failure(code="bad-request", message=words, exit=2)) from None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(ref: str, *steps: str) -> str:
    if not ref or "/" in ref:
        # It would be taken for another path.
        failure = Failure(code="no-such-job", message=f"There is no job {ref!r}.", advice=_LIST)
        raise Refused(404, failure)
    return quoted("/v1/jobs", ref, *steps)


def _at_a_glance(details: Details) -> Job:
    return Job(**{name: getattr(details, name) for name in Job.__struct_fields__})
