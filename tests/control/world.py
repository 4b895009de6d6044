"""A world for the conductor: it grants, starts and ends what it is asked to, as a script says."""

from collections.abc import Callable

from jobman.api import loads
from jobman.control import happenings as h
from jobman.control.causes import Failure
from jobman.control.conductor import Conductor
from jobman.control.states import FINAL

MOST_STEPS = 5_000
FOR_EVER = 10**9


class World:
    """Runs a document to its end. `script(key, attempt)` gives how long an attempt takes and how it ends."""

    def __init__(
        self, text: str, script: Callable[[str, int], tuple[float, Failure | None]], slots: int = FOR_EVER
    ):
        self.text = text
        spec = loads(text)
        assert spec.ok, spec.problems
        self.conductor = Conductor(spec.plan())
        self.script = script
        self.now = 0.0
        self.slots = slots
        self.asked: list[str] = []
        self.holding: set[str] = set()
        self.ends: dict[tuple[str, int], tuple[float, Failure | None]] = {}
        self.launched: list[tuple[str, int]] = []
        self.starting: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []
        self.stopped: list[tuple[str, str]] = []
        self.most_at_once = 0
        self.finish: str | None = None

    def __repr__(self) -> str:
        replicas = ", ".join(map(repr, self.conductor.root.walk()))
        return f"{self.text}launched {self.launched}, now {replicas}"

    def tell(self, happening: h.Happening) -> None:
        for request in self.conductor.take(happening, self.now):
            self._do(request)

    def _do(self, request: h.Request) -> None:
        match request:
            case h.Ask(replica=key):
                assert key not in self.asked
                assert key not in self.holding
                self.asked.append(key)
            case h.Withdraw(replica=key):
                self.asked.remove(key)
            case h.Launch(replica=key, attempt=attempt):
                assert all(key != other for other, _ in self.ends), f"{key} runs twice"
                assert (key, attempt) not in self.launched, f"{key} was launched before as attempt {attempt}"
                self.launched.append((key, attempt))
                self.starting.append((key, attempt))
                seconds, failure = self.script(key, attempt)
                self.ends[key, attempt] = (self.now + seconds, failure)
                self.most_at_once = max(self.most_at_once, len(self.ends))
            case h.Stop(replica=key, attempt=attempt, why=why):
                self.stopped.append((key, why))
                self.ends[key, attempt] = (self.now, Failure("signal"))
            case h.GiveBack(replica=key):
                self.holding.remove(key)
            case h.Finish(outcome=outcome):
                assert self.finish is None
                self.finish = outcome

    def step(self) -> bool:
        """Let the next thing happen; False where nothing can."""
        if self.finish is not None:
            return False
        if self.starting:
            self.tell(h.Started(*self.starting.pop(0)))
            return True
        if key := self._next_to_be_granted():
            self.asked.remove(key)
            self.holding.add(key)
            self.tell(h.Granted(key))
            return True
        moments = [end for end, _ in self.ends.values()]
        due = self.conductor.due()
        soonest = min([*moments, *([due] if due is not None else [])], default=None)
        if soonest is None or soonest >= FOR_EVER:
            return False
        self.now = max(self.now, soonest)
        for (key, attempt), (end, failure) in list(self.ends.items()):
            if end <= self.now:
                del self.ends[key, attempt]
                self.ended.append((key, attempt))
                self.tell(h.Ended(key, attempt, failure))
                return True
        self.tell(h.Tick())
        return True

    def _next_to_be_granted(self) -> str | None:
        """What runs inside a group runs on the group's allocation; only the others need a slot."""
        used = sum("/" not in key for key in self.holding)
        return next((key for key in self.asked if "/" in key or used < self.slots), None)

    def run(self, *first: h.Happening) -> "World":
        self.tell(h.Tick())
        for happening in first:
            self.tell(happening)
        for _ in range(MOST_STEPS):
            if not self.step():
                break
        return self

    def state(self, key: str) -> str:
        return str(self.conductor.state_of(key))

    @property
    def is_settled(self) -> bool:
        return all(replica.state in FINAL for replica in self.conductor.root.walk())


def quick(_key: str, _attempt: int) -> tuple[float, Failure | None]:
    """Everything succeeds after a second."""
    return 1.0, None


def failing(
    *names: str, code: int = 1, until: int = FOR_EVER
) -> Callable[[str, int], tuple[float, Failure | None]]:
    """These tasks fail, up to an attempt; the others succeed."""

    def script(key: str, attempt: int) -> tuple[float, Failure | None]:
        name = key.rsplit("/", 1)[-1]
        hit = (name in names or name.split(".")[0] in names) and attempt <= until
        return 1.0, Failure("exit", code) if hit else None

    return script
