"""An audit of a stage: whether all who count agree, what is left over, which promises were broken."""

from jobman.sched.capacity import to_units


def disagreements(stage):
    """Where planner, pool and floor do not know the same of what is held and who waits."""
    planning = stage.planning
    timeline = planning._planner.timeline
    found = []
    for name, free in planning.pool.free().items():
        row = timeline.rows[timeline.numbers[name]]
        for kind, amount in free.items():
            units = to_units(kind, amount)
            if row.free[timeline.kinds[kind]] != units:
                found.append(f"{kind} of {name}: {row.free} for the planner, {units} in the pool")
    jobs = [job for job in stage.floor.jobs.values() if job.line is None]
    held = sum("/" not in key for job in jobs for key in job.allocations)
    if len(planning._running) != held:
        found.append(f"the planner runs {sorted(planning._running)}, but {held} are held")
    if set(planning._known) != set(planning._running) | set(planning.waiting):
        found.append(f"the planner knows {sorted(planning._known)}, others wait: {sorted(planning.waiting)}")
    waiting = sum(len(lane.waiting) for lane in planning._planner.lanes)
    if waiting != len(planning.waiting):
        found.append(f"{waiting} wait in lanes, and {len(planning.waiting)} on the floor")
    return found


def leftovers(stage):
    """What is still held, planned, promised or counted although no job is left and no window."""
    planning, planner = stage.planning, stage.planning._planner
    found = disagreements(stage)
    found += [f"jobs: {list(stage.floor.jobs)}"] if stage.floor.jobs else []
    found += [f"entries: {list(planner.entries)}"] if planner.entries else []
    for row in planner.timeline.rows:
        if row.free != row.capacity:
            found.append(f"{row.name} is not free: {row.free} of {row.capacity}")
        # Windows that begin later may be left, and are at the end of each profile.
        if row.is_open and not stage.director.calendar() and not _is_flat(row.profile, row.capacity):
            found.append(f"{row.name} is planned: {row.profile.times} {row.profile.columns}")
    for name, bound in planner.compiler.bounds.items():
        most = [to_units(kind, bound.most[kind]) for kind in bound.kinds]
        if bound.free != most or not _is_flat(bound.profile, most):
            found.append(f"the limit {name} is used: {bound.profile.times} {bound.profile.columns}")
    for tally in planning.quotas.tallies():
        if tally.jobs or tally.waiting or tally.amounts or tally.committed:
            found.append(f"quotas: {tally}")
    promises, held = stage.store.promises(), stage.store.allocations(open_only=True)
    return found + [f"promise: {each}" for each in promises] + [f"allocation: {each}" for each in held]


def _is_flat(profile, capacity):
    """Whether all is free from now on."""
    return all(
        list(levels) == list(capacity)
        for moment, levels in zip(profile.times, zip(*profile.columns, strict=True), strict=True)
    )


class Witness:
    """Remembers what everybody was promised, and finds who was promised less later or started too late."""

    def __init__(self, tolerance=0.001):
        self.broken: list[str] = []
        self.moved: list[str] = []
        self.explained: list[str] = []
        """What an administrator's act or the loss of a node has moved, with an event and a revision."""
        self._tolerance = tolerance
        self._told: dict[tuple[str, str], float] = {}

    def __call__(self, stage):
        kept = {(each.job, each.key): each.guaranteed_by for each in stage.store.promises()}
        for who, before in self._told.items():
            after = kept.get(who)
            if who not in kept:
                self._look_at_start(stage, who, before)
            elif after is None or after > before + self._tolerance:
                (self.explained if _is_explained(stage, who) else self.moved).append(
                    f"{who}: {before} became {after} at {stage.now}"
                )
            elif after < stage.now - self._tolerance:
                self.broken.append(f"{who} was promised {after}, and still waits at {stage.now}")
        self._told = {who: by for who, by in kept.items() if by is not None}

    def _look_at_start(self, stage, who, before):
        job, key = who
        started = [at for address, at in stage.engine._started.items() if address[:2] == (job, key)]
        if started and max(started) == stage.now and stage.now > before + self._tolerance:
            self.broken.append(f"{who} was promised {before} and started at {stage.now}")


_CAUSES = ("maintenance ", "the reservation ", "node ", "the queue ")


def _is_explained(stage, who):
    """Whether a revision and an event of this very moment name a cause that may move promises."""
    job, key = who
    causes = [
        each.cause
        for each in stage.store.revisions(job, 20)
        if each.key == key and each.at == stage.now and each.cause.startswith(_CAUSES)
    ]
    events = stage.store.events(job, kinds=["promise-moved"])
    words = [event.message for event in events if event.replica == key and event.at == stage.now]
    return any(cause in message for cause in causes for message in words)
