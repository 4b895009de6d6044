"""Hosting: the engine of a service, which runs what is placed: this machine, or a cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jobman.control.admission import SettingsShelf
from jobman.control.refusals import Refusal
from jobman.control.store.store import Store
from jobman.engines.base import Host

if TYPE_CHECKING:
    from jobman.control.serving import ServeOptions
    from jobman.engines.kubernetes.access import Access

LOCAL = "this machine"


async def open_host(options: ServeOptions, store: Store, shelf: SettingsShelf) -> Host:
    """The engine that the options name, which knows its nodes. What it runs was started on it before."""
    if options.engine == "kubernetes":
        return await _cluster(options, store, shelf)
    from jobman.engines.local.engine import LocalEngine

    _settle_on(store, LOCAL)
    return LocalEngine(options.places.state, facts=shelf.facts())


async def _cluster(options: ServeOptions, store: Store, shelf: SettingsShelf) -> Host:
    """Nodes with the labels of the settings, and a namespace for the jobs of everybody."""
    from jobman.engines.kubernetes.api import Api
    from jobman.engines.kubernetes.managed.engine import ManagedEngine
    from jobman.engines.kubernetes.managed.nodes import Pool
    from jobman.engines.kubernetes.managed.survey import Survey
    from jobman.engines.kubernetes.managed.target import ManagedTarget
    from jobman.engines.kubernetes.target import TOPOLOGY

    settings = shelf.cluster()
    access = access_of(options, shelf)
    _settle_on(store, f"the namespace {access.namespace} of a cluster")
    gpu = settings.gpu_resource or Pool().gpu_resource
    topology = {**TOPOLOGY, **settings.topology}
    tolerations = tuple({"key": key, "operator": "Exists"} for key in settings.tolerates)
    pool = Pool(labels=settings.nodes, tolerations=tolerations, topology=topology, gpu_resource=gpu)
    target = ManagedTarget(
        namespace=access.namespace,
        service=store.identity(),
        default_image=shelf.default_image(),
        image_prefix=shelf.image_prefix(),
        topology=topology,
        tolerations=tolerations,
        gpu_resource=gpu,
        # Servers may connect to every job; where they are, no job can pose as one of them.
        proxy_namespace=os.environ.get("POD_NAMESPACE", ""),
    )
    api = Api(access, guard=options.guard)
    try:
        return await ManagedEngine.open(api, target, options.places.state, Survey(api, pool))
    except BaseException:
        await api.close()
        raise


def access_of(options: ServeOptions, shelf: SettingsShelf) -> Access:
    """The way to the cluster: as the options say, else the settings, else as kubectl finds it."""
    import msgspec

    from jobman.engines.kubernetes.kubeconfig import load

    settings = shelf.cluster()
    access = load(options.kubeconfig or settings.kubeconfig, options.context or settings.context)
    namespace = options.namespace or settings.namespace or access.namespace
    return msgspec.structs.replace(access, namespace=namespace)


def _settle_on(store: Store, ground: str) -> None:
    """Refuse to go on elsewhere with attempts under way: nobody would see them, and they would run twice."""
    known = store.ground()
    if known not in (None, ground) and store.unfinished().attempts:
        raise Refusal(
            "wrong-state",
            f"attempts of this database run on {known}, and not on {ground}",
            "start the service as it was started before, or wait there until they are over",
        )
    if known != ground:
        store.keep_ground(ground)
