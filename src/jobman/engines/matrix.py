"""Every engine that is built, beside its table of features."""

from __future__ import annotations

from jobman.engines.features import SupportTable
from jobman.engines.kubernetes.features import FEATURES as KUBERNETES
from jobman.engines.local.features import FEATURES as LOCAL

MATRIX: dict[str, SupportTable] = {"local": LOCAL, "kubernetes": KUBERNETES}
