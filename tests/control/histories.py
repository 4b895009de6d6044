"""Random histories on a stage: jobs of many kinds come and end, and people interfere; a seed decides."""

import random
from contextlib import contextmanager
from datetime import UTC, datetime

from jobman.control.administration import CalendarKind, NewEntry
from jobman.control.refusals import Refusal
from jobman.engines.memory import Play
from tests.control.audit import Witness, disagreements, leftovers
from tests.control.stage import document

OWNERS = ("ada", "bob", "carl")
DURATIONS = (10, 50, 100, 300, 1000)
PAUSES = (0, 1, 30, 61, 200)
PARTS_OF_THE_LIMIT = (0.1, 0.5, 0.9, 0.99, 1.0)


@contextmanager
def unless(*codes):
    """What is done may be refused for these reasons, and for no other."""
    try:
        yield
    except Refusal as refusal:
        if refusal.code not in codes:
            raise


class History:
    """Plays one history to its end. `found` is what should not be; `look` looks whenever all has settled."""

    def __init__(
        self,
        theatre,
        seed,
        *,
        acts=False,
        governed=False,
        restarts=0,
        queues=("batch",),
        machine=None,
        look=None,
        tolerance=0.001,
        whole=True,
    ):
        self._theatre = theatre
        self._random = random.Random(seed)
        self._acts = acts
        self._governed = governed
        self._restarts = restarts
        self._queues = queues
        self._machine = machine or {"cores": 4}
        self._look = look
        self._whole = whole
        """Whether there are jobs that need whole nodes."""
        self.witness = Witness(tolerance)
        self.jobs: list[str] = []
        self.found: list[str] = []

    async def play(self, steps):
        parts = self._restarts + 1
        for part in range(parts):
            async with self._theatre.stage(self._script, **self._machine) as stage:
                stage.each_time += [self.witness, self._watch]
                await stage.settle()
                for _ in range(steps // parts):
                    await self._step(stage)
                if part == parts - 1:
                    await self._finish(stage)
        self.found += self.witness.broken + self.witness.moved
        return self

    def _script(self, order):
        limit = order.unit.duration or 200
        code = self._random.choice([0, 0, 0, 1])
        return Play(seconds=limit * self._random.choice(PARTS_OF_THE_LIMIT), exit_code=code)

    def _watch(self, stage):
        self.found += disagreements(stage)
        assert not self.found, self.found
        if self._look is not None:
            self._look(stage)

    async def _step(self, stage):
        chance = self._random.random()
        if self._governed and self._random.random() < 0.15:
            await self._govern(stage)
        elif chance < 0.5:
            await self._submit(stage)
        elif chance < 0.75 or not self._acts:
            await stage.pass_time(self._random.choice(PAUSES))
        elif self.jobs:
            await self._interfere(stage)

    async def _submit(self, stage):
        chance = self._random
        task: dict[str, object] = {}
        if chance.random() < 0.2:
            task["retries"] = 2
        if self._whole and chance.random() < 0.1:
            task["placement"] = {"exclusive": True}
        size = {"cores": chance.randint(1, self._machine["cores"])}
        if self._whole and self._machine.get("nodes", 1) > 1 and chance.random() < 0.2:
            size = {"nodes": chance.randint(1, self._machine["nodes"])}
        keys = {"queue": chance.choice(self._queues)}
        if chance.random() < 0.2:
            keys["priority"] = chance.choice(["low", "high"])
        text = document(
            duration=chance.choice(DURATIONS),
            replicas=chance.choice([None, None, None, 2, 5]),
            task=task,
            **size,
            **keys,
        )
        with unless("quota", "wrong-state", "does-not-fit"):
            self.jobs.append(await stage.submit(text, chance.choice(OWNERS)))

    async def _interfere(self, stage):
        job = self._random.choice(self.jobs[-12:])
        act = self._random.choice(["cancel", "hold", "release", "hold", "release", "end"])
        with unless("wrong-state"):
            if act == "end":
                await stage.end(job, code=self._random.choice([0, 1]))
            else:
                await getattr(stage.director, act)(job, "ada")
                await stage.settle()

    async def _govern(self, stage):
        """What administrators do."""
        chance = self._random
        node = f"node-{chance.randrange(self._machine.get('nodes', 1))}"
        act = chance.choice(
            ["window", "reservation", "remove", "remove", "drain", "resume", "resume", "close", "open"]
        )
        if act in ("window", "reservation"):
            kind: CalendarKind = "maintenance" if act == "window" else "reservation"
            start = datetime.fromtimestamp(stage.now + chance.choice([0, 10, 100, 500]), UTC)
            name = f"entry-{chance.randrange(10**9)}"
            entry = NewEntry(
                kind=kind, name=name, start=start, duration=chance.choice(DURATIONS), nodes=[node]
            )
            with unless("wrong-state"):
                await stage.director.add_calendar(entry, "ada")
        elif act == "remove":
            known = stage.director.calendar()
            if known:
                await stage.director.remove_calendar(chance.choice(known).name, None, "root")
        elif act in ("drain", "resume"):
            await stage.director.set_node_state(node, "draining" if act == "drain" else "up", "", "root")
        else:
            state = {"close": "closed", "open": "open"}[act]
            await stage.director.set_queue_state(chance.choice(self._queues), state, "", "root")
        await stage.settle()

    async def _finish(self, stage):
        for queue in self._queues:
            await stage.director.set_queue_state(queue, "open", "", "root")
        for node in stage.floor.nodes:
            await stage.director.set_node_state(node, "up", "", "root")
        for job in list(stage.floor.jobs):
            if stage.floor.jobs[job].conductor.held:
                await stage.director.release(job, "ada")
        await stage.settle()
        await stage.play_out()
        self.found += leftovers(stage)
