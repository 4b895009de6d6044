"""An audit of a stage: whether all who count agree, what is left over, which promises were broken."""

from jobman.sched.capacity import to_units


def disagreements(stage):
    """Where planner, pool and quotas do not know the same of what is held."""
    planning = stage.planning
    found = []
    free = planning.pool.free()
    for row in planning._planner.timeline.rows:
        for kind, number in planning._planner.timeline.kinds.items():
            pooled = to_units(kind, free[row.name][kind])
            if row.free[number] != pooled:
                found.append(
                    f"{kind} of {row.name}: {row.free[number]} for the planner, {pooled} in the pool"
                )
    held = sum(
        "/" not in key for job in stage.floor.jobs.values() for key in job.allocations if job.line is None
    )
    if len(planning._running) != held:
        found.append(f"the planner runs {sorted(planning._running)}, but {held} are held")
    if set(planning._known) != set(planning._running) | set(planning.waiting):
        found.append(f"the planner knows {sorted(planning._known)}, others wait: {sorted(planning.waiting)}")
    waiting = sum(len(lane.waiting) for lane in planning._planner.lanes)
    if waiting != len(planning.waiting):
        found.append(f"{waiting} wait in lanes, and {len(planning.waiting)} on the floor")
    return found


def leftovers(stage):
    """What is still held, planned, promised or counted although no job is left."""
    planning, planner = stage.planning, stage.planning._planner
    found = disagreements(stage)
    if stage.floor.jobs:
        found.append(f"jobs: {list(stage.floor.jobs)}")
    if planner._entries:
        found.append(f"entries: {list(planner._entries)}")
    found += [
        f"{row.name} is not free: {row.free}" for row in planner.timeline.rows if row.free != row.capacity
    ]
    blocked = {number for _, numbers in planner._blocks.values() for number in numbers}
    blocked |= {planner.timeline.numbers[name] for name in planner._away}
    for number, row in enumerate(planner.timeline.rows):
        if number not in blocked and not _is_flat(row.profile, stage.now, row.capacity):
            found.append(f"{row.name} is planned: {row.profile.times} {row.profile.columns}")
    for name, (_, profile) in planner._bounds.items():
        if len({*map(tuple, zip(*profile.columns, strict=True))}) > 1:
            found.append(f"the limit {name} is used: {profile.times} {profile.columns}")
    held = [
        each
        for each in planning.quotas.tallies()
        if each.jobs or each.waiting or each.amounts or each.committed
    ]
    if held:
        found.append(f"quotas: {held}")
    if stage.store.promises():
        found.append(f"promises: {stage.store.promises()}")
    if stage.store.allocations(open_only=True):
        found.append(f"allocations: {stage.store.allocations(open_only=True)}")
    return found


def _is_flat(profile, now, capacity):
    return all(
        list(levels) == list(capacity)
        for moment, levels in zip(profile.times, zip(*profile.columns, strict=True), strict=True)
        if moment >= now or moment == profile.times[-1]
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


_CAUSES = ("maintenance ", "the reservation ", "node ", "queue ")


def _is_explained(stage, who):
    job, key = who
    revisions = [each for each in stage.store.revisions(job, 20) if each.key == key]
    revision = max(revisions, key=lambda each: each.number, default=None)
    words = [event for event in stage.store.events(job, kinds=["promise-moved"]) if event.replica == key]
    if revision is None or not words or revision.at != stage.now or words[-1].at != stage.now:
        return False
    return revision.cause in words[-1].message and revision.cause.startswith(_CAUSES)
