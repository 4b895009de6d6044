"""Every engine that is built, beside its table of features."""

from __future__ import annotations

from jobman.engines.features import SupportTable
from jobman.engines.flux.features import FEATURES as FLUX
from jobman.engines.kubernetes.features import FEATURES as KUBERNETES
from jobman.engines.kubernetes.managed.features import FEATURES as KUBERNETES_MANAGED
from jobman.engines.local.features import FEATURES as LOCAL
from jobman.engines.slurm.features import FEATURES as SLURM

MATRIX: dict[str, SupportTable] = {
    "local": LOCAL,
    "kubernetes": KUBERNETES,
    "kubernetes-managed": KUBERNETES_MANAGED,
    "slurm": SLURM,
    "flux": FLUX,
}
"""A cluster is there twice: as it is by itself, and as the service's own that plans and decides."""
