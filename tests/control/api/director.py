"""A director for tests of what is around it: the real store, and jobs that do what a test says."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from pathlib import Path
from typing import Any

import msgspec

from jobman import loads
from jobman.control import answers
from jobman.control.administration import CalendarEntry, NewEntry, QueueInfo, Standing
from jobman.control.api.reading import job_answer
from jobman.control.broadcast import Broadcast, Subscription
from jobman.control.calendars import Calendars
from jobman.control.logs.watching import LogWatcher
from jobman.control.refusals import Refusal
from jobman.control.store.records import (
    AttemptRecord,
    Changes,
    EventRecord,
    JobRecord,
    LogRecord,
    ReplicaRecord,
    SubmissionRecord,
    TaskRecord,
)
from jobman.control.store.store import Store
from jobman.control.switches import Switches, standing
from jobman.plan.nodes import ClusterNode
from jobman.sched.accounts import AccountTree
from jobman.sched.scheduling import DEFAULT_QUEUES
from tests.control.api.passages import Entrance

OVER = answers.FINAL_STATES
NODES = [ClusterNode(name=name, amounts={"core": 4}) for name in ("here", "n1", "n2", "n3")]


class ScriptedDirector:
    """Keeps the contract of a director; a job runs one replica, `main.0`, when it is told to."""

    def __init__(self, folder: Path, broadcast: Broadcast | None = None) -> None:
        self.folder = folder
        self.store = Store.open(folder / "jobman.db")
        self.store.claim("a test")
        self.trouble = ""
        self.notes: list[str] = []
        self.accounts = AccountTree()
        self.failed = asyncio.Event()
        self.fault: Exception | None = None
        """Raised by the next submission."""
        self.live: dict[str, JobRecord] = {}
        self.host = Entrance()
        self.logs = LogWatcher(inotify=False)
        self.broadcast = broadcast or Broadcast()
        self._calendars = Calendars(self.store.calendar())
        self._switches = Switches(self.store.queue_states(), self.store.node_states())
        self._jobs, self._events = (getattr(self.store.last_numbers(), name) for name in ("job", "event"))
        for record in self.store.jobs().items:
            if record.state not in OVER:
                self.live[record.id] = record

    def reread(self) -> None:
        """Nothing of it depends on settings."""

    async def start(self) -> None:
        await self.logs.__aenter__()

    async def stop(self) -> None:
        self.logs.close()
        self.store.close()

    @property
    def live_jobs(self) -> int:
        return len(self.live)

    def is_idle(self) -> bool:
        return not self.live

    def subscribe(self) -> Subscription:
        return self.broadcast.subscribe()

    # -- what callers ask for --------------------------------------------------------------------------

    async def submit(self, submission: answers.Submission, owner: str, key: str | None) -> answers.Submitted:
        if self.fault is not None:
            raise self.fault
        digest = hashlib.sha256(msgspec.json.encode(submission)).hexdigest()
        if key is not None and (known := self.store.submission(owner, key)):
            if known.digest != digest:
                raise Refusal("key-reused", "This key belongs to another submission.")
            found = [self.store.job(each) for each in known.jobs]
            return answers.Submitted(jobs=[job_answer(job) for job in found if job], replayed=True)
        spec = loads(submission.document, name=submission.file)
        if not spec.ok:
            problems = msgspec.to_builtins(spec.problems)
            raise Refusal("bad-document", "The document is wrong.", problems=problems)
        plan = spec.plan()
        record = JobRecord(
            id=secrets.token_hex(6),
            number=self._jobs + 1,
            name=submission.name or plan.name or "job",
            owner=owner,
            submitted_at=time.time(),
            queue=plan.queue,
            labels=plan.labels,
            document=submission.document,
            plan=plan.to_json(),
            digest=plan.digest,
            cwd=submission.cwd or "/",
            held=submission.hold,
            options={"environment given": submission.environment is not None, "settings": "private"},
        )
        if submission.dry_run:
            return answers.Submitted(jobs=[job_answer(record)])
        self._jobs += 1
        self.live[record.id] = record
        changes = Changes(new_jobs={record.id})
        if key is not None:
            changes.submissions.append(
                SubmissionRecord(owner=owner, key=key, digest=digest, jobs=(record.id,), at=time.time())
            )
        self._commit(record, "submitted", changes)
        return answers.Submitted(jobs=[job_answer(record)])

    async def cancel(self, job_id: str, who: str) -> None:
        self._alive(job_id)
        self.finish(job_id, "cancelled", reason=f"cancelled by {who}")

    async def hold(self, job_id: str, who: str) -> None:
        self._set(job_id, "held", held=True)

    async def release(self, job_id: str, who: str) -> None:
        self._set(job_id, "released", held=False)

    async def open_gate(self, job_id: str, gate: str, who: str) -> None:
        record = self._alive(job_id)
        if gate != "data":
            raise Refusal("no-such-gate", f"There is no gate {gate}.")
        known = record.conductor.get("open_gates", [])
        self._set(job_id, "gate", conductor={"open_gates": [*known, gate]})

    async def extend(self, job_id: str, seconds: float, task: str | None, who: str) -> None:
        if task not in (None, "main"):
            raise Refusal("no-such-task", f"There is no task {task}.")
        if seconds > 1e6:
            raise Refusal("would-delay", "Somebody was promised these nodes.", largest=93.5)
        self._set(job_id, "extended", reason=f"{seconds} s more")

    async def delete(self, job_id: str, who: str) -> None:
        if job_id in self.live:
            raise Refusal("wrong-state", "The job is not over.", "Cancel it first.")
        self.store.write(Changes(deleted={job_id}))

    def in_line(self) -> list[int]:
        """The other way round, so that it is nobody else's order."""
        return [each.number for each in self.live.values() if each.state == "waiting"]

    def glance(self, job_id: str) -> tuple[answers.Estimate | None, float | None]:
        return None, None

    async def why(self, job_id: str) -> answers.Why | None:
        record = self.live.get(job_id)
        if record is None:
            return None
        return answers.Why(job=job_id, state=record.state, summary="It waits for its turn.", position=1)  # type: ignore[arg-type]

    def nodes(self) -> list[answers.Node]:
        return [answers.Node(name="here", amounts={"core": 4.0}, jobs=sorted(self.live))]

    async def queue(self, owner: str) -> list[answers.QueueRow]:
        mine = sum(record.owner == owner for record in self.live.values())
        return [
            answers.QueueRow(
                flavor=None, resources={"core": 1.0}, waiting=len(self.live), running=0, yours_waiting=mine
            )
        ]

    def copies(self, job_id: str) -> list[dict[str, Any]]:
        record = self.live.get(job_id)
        if record is None or record.state != "running":
            return []
        return [{"replica": "main.0", "attempt": 1, "copy": 0, "node": "here", "pid": 1, "cwd": "/"}]

    # -- what administrators do ------------------------------------------------------------------------
    # As the real one does it, but for a planner that heeds it.

    def calendar(self) -> list[CalendarEntry]:
        return self._calendars.entries(time.time())

    async def add_calendar(self, wanted: NewEntry, who: str) -> CalendarEntry:
        now = time.time()
        record, notes = self._calendars.admit(wanted, who, now, NODES)
        self.store.write(Changes(calendar={record.name: record}))
        self._calendars.keep(record)
        return self._calendars.entry(record, now, notes)

    async def remove_calendar(self, name: str, kind: str | None, who: str) -> CalendarEntry:
        record = self._calendars.find(name, kind)
        self.store.write(Changes(calendar={name: None}))
        self._calendars.drop(name)
        return self._calendars.entry(record, time.time())

    def queues(self) -> list[QueueInfo]:
        return self._switches.infos(DEFAULT_QUEUES)

    async def set_queue_state(self, name: str, state: str, reason: str, who: str) -> Standing:
        record = self._switches.switch_queue(name, state, reason, who, time.time(), DEFAULT_QUEUES)
        self.store.write(Changes(queue_states={name: record}))
        self._switches.keep_queue(record)
        return standing(record)

    async def set_node_state(self, name: str, state: str, reason: str, who: str) -> Standing:
        names = [node.name for node in NODES]
        record = self._switches.switch_node(name, state, reason, who, time.time(), names)
        self.store.write(Changes(node_states={name: record}))
        self._switches.keep_node(record)
        return standing(record)

    # -- what a test lets happen -----------------------------------------------------------------------

    def begin(self, job_id: str) -> None:
        """Start the one replica, whose output is a file."""
        record = self._alive(job_id)
        record.state, record.started_at = "running", time.time()
        self.host.running.add(job_id)
        path = self.output(job_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.logs.watch(job_id, path)
        attempt = AttemptRecord(job=job_id, key="main.0", attempt=1, granted_at=1.0, nodes=("here",))
        replica = ReplicaRecord(job=job_id, key="main.0", unit="main", index=0, state="running", attempt=1)
        task = TaskRecord(job=job_id, scope="", unit="main", counts={"running": 1})
        changes = Changes(
            attempts={(job_id, "main.0", 1): attempt},
            replicas={(job_id, "main.0"): replica},
            tasks={(job_id, "", "main"): task},
            logs=self._log(job_id, ended=False),
        )
        self._commit(record, "started", changes, replica="main.0", attempt=1)

    def write(self, job_id: str, *lines: str) -> None:
        """Have the replica write lines."""
        with self.output(job_id).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def finish(self, job_id: str, state: str = "succeeded", exit_code: int = 0, reason: str = "") -> None:
        """End a job."""
        record = self._alive(job_id)
        changes = Changes()
        if record.state == "running":
            self.logs.unwatch(job_id)
            changes.logs = self._log(job_id, ended=True)
        record.state, record.ended_at = state, time.time()
        record.exit_code, record.reason = exit_code, reason
        del self.live[job_id]
        self.host.running.discard(job_id)
        self._commit(record, state, changes)

    def happen(self, job_id: str, kind: str, count: int = 1) -> None:
        """Let things happen to a job that change nothing."""
        record = self._alive(job_id)
        events = [self._event(record, kind) for _ in range(count)]
        self.store.write(Changes(events=events))
        self.broadcast.publish(events)

    def output(self, job_id: str) -> Path:
        return self.folder / "jobs" / job_id / "stdout"

    def _log(self, job_id: str, *, ended: bool) -> dict[tuple[str, str, int, int, str], LogRecord]:
        path = self.output(job_id)
        record = LogRecord(
            job=job_id,
            key="main.0",
            attempt=1,
            copy=0,
            stream="stdout",
            path=str(path),
            node="here",
            size=path.stat().st_size,
            ended=ended,
        )
        return {(job_id, "main.0", 1, 0, "stdout"): record}

    def _alive(self, job_id: str) -> JobRecord:
        record = self.live.get(job_id)
        if record is None:
            raise Refusal("wrong-state", "The job is over.")
        return record

    def _set(self, job_id: str, kind: str, **changes: Any) -> None:
        record = self._alive(job_id)
        for name, value in changes.items():
            setattr(record, name, value)
        self._commit(record, kind, Changes())

    def _event(
        self, record: JobRecord, kind: str, replica: str | None = None, attempt: int | None = None
    ) -> EventRecord:
        self._events += 1
        return EventRecord(
            number=self._events, job=record.id, at=time.time(), kind=kind, replica=replica, attempt=attempt
        )

    def _commit(
        self,
        record: JobRecord,
        kind: str,
        changes: Changes,
        replica: str | None = None,
        attempt: int | None = None,
    ) -> None:
        changes.jobs[record.id] = record
        changes.events.append(self._event(record, kind, replica, attempt))
        self.store.write(changes)
        self.broadcast.publish(changes.events)
