"""`/v1/queues` and the states of nodes: what is open, what is drained."""

from __future__ import annotations

from jobman.control.administration import NewNodeState, NewQueueState, QueueInfo, Standing
from jobman.control.answers import Listing
from jobman.control.api.call import Call
from jobman.control.api.endpoint import Resource

states = Resource("cluster")


@states.serve("GET", "/v1/queues", answers={200: Listing[QueueInfo]})
async def list_queues(call: Call) -> Listing[QueueInfo]:
    """List the queues: their nodes, how they are served, and whether they are open."""
    return Listing(items=call.director.queues())


@states.serve(
    "POST",
    "/v1/queues/{queue}/state",
    body=NewQueueState,
    answers={200: Standing},
    refuses=("no-such-queue", "store"),
    admin=True,
)
async def set_queue_state(call: Call, wanted: NewQueueState) -> Standing:
    """Open a queue, drain it (it takes nothing in) or close it (nor does it start what waits)."""
    director, who = call.director, call.caller.user
    return await director.set_queue_state(call.part("queue"), wanted.state, wanted.reason, who)


@states.serve(
    "POST",
    "/v1/nodes/{node}/state",
    body=NewNodeState,
    answers={200: Standing},
    refuses=("no-such-node", "store"),
    admin=True,
)
async def set_node_state(call: Call, wanted: NewNodeState) -> Standing:
    """Drain a node: what runs there goes on and nothing new starts; or use it again."""
    director, who = call.director, call.caller.user
    return await director.set_node_state(call.part("node"), wanted.state, wanted.reason, who)
