"""`jobman server` on the lab's cluster, whose pods find what an ordinary machine has.

What a site gives its pods by mounts, this gives them where they are written: the folder of submission and the
programs of the machine that the lab's nodes are.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from jobman.cli.main import main
from jobman.engines.base import Order
from jobman.engines.kubernetes.managed import releasing
from jobman.engines.kubernetes.managed.compile import Release, compile_order
from jobman.engines.kubernetes.managed.target import ManagedTarget
from tests.conformance.housing import housed_pod


def _housed(order: Order, target: ManagedTarget) -> Release:
    release = compile_order(order, target)
    pods = [{**pod, "spec": housed_pod(pod["spec"], Path(order.cwd))} for pod in release.pods]
    return msgspec.structs.replace(release, pods=pods)


if __name__ == "__main__":
    setattr(releasing, "compile_order", _housed)  # noqa: B010 - a name it imports, not one it gives
    main()
