"""Where the leader is found: the only endpoint of a Service, written by whoever leads.

Servers that stand by are as ready as the one that leads, for those who drain nodes and roll out versions; so
it is not by readiness that requests find the leader.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from ipaddress import ip_address

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.errors import KubernetesError
from jobman.engines.kubernetes.objects import Written

log = logging.getLogger("jobman.lease")
PORT_NAME = "api"
_AGAIN_SECONDS = 10.0
"""How soon it is there again after somebody removed it."""


def endpoints(service: str, namespace: str, address: str, port: int) -> Written:
    """The only endpoint of a Service."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{service}-leader",
            "namespace": namespace,
            "labels": {
                "kubernetes.io/service-name": service,
                "endpointslice.kubernetes.io/managed-by": "server.jobman.io",
                "app.kubernetes.io/name": "jobman",
            },
        },
        "addressType": f"IPv{ip_address(address).version}",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
    }


class Advertisement:
    """Says that this server leads, for as long as the block lasts."""

    def __init__(self, access: Access, written: Written, guard: Callable[[], None]) -> None:
        self._access = access
        self._written = written
        self._guard = guard
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._insist())

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._task

    async def _insist(self) -> None:
        words = ""
        async with Api(self._access, guard=self._guard) as api:
            while True:
                try:
                    await api.apply_patch(self._written, force=True)
                except KubernetesError as error:
                    if error.message != words:
                        log.warning("the leader is not found by others: %s", error.message)
                    words = error.message
                else:
                    words = ""
                await asyncio.sleep(_AGAIN_SECONDS)
