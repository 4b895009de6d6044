"""`/v1/nodes` and `/v1/queue`: what there is, and what is asked for."""

from __future__ import annotations

from jobman.control.answers import Listing, Node, QueueRow
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Resource
from jobman.control.store.views import JobFilter

cluster = Resource("cluster")


@cluster.serve("GET", "/v1/nodes", answers={200: Listing[Node]})
async def list_nodes(call: Call) -> Listing[Node]:
    """List the nodes and how much of each is in use. Users see which of its jobs are their own."""
    nodes = call.director.nodes()
    if not call.caller.is_admin:
        mine = await call.desk.read(_own_jobs, call)
        for node in nodes:
            node.jobs = [job for job in node.jobs if job in mine]
    return Listing(items=nodes)


@cluster.serve("GET", "/v1/queue", answers={200: Listing[QueueRow]})
async def show_queue(call: Call) -> Listing[QueueRow]:
    """How many jobs wait and run, by what they ask for."""
    return Listing(items=await call.director.queue(call.caller.user))


def _own_jobs(call: Call) -> set[str]:
    own: set[str] = set()
    wanted = JobFilter(owner=call.caller.user, states=frozenset(("waiting", "running")))
    cursor = None
    while True:
        page = call.store.jobs(wanted, cursor, 1000)
        own.update(record.id for record in page.items)
        cursor = page.cursor
        if cursor is None:
            return own
