"""The catalogue of messages: every code, its sentence, its advice and its page.

A code keeps its number for ever. The sentences live here and nowhere else; what is raised carries only
the values that fill them.
"""

from __future__ import annotations

from jobman.spec.codes.catalogue import Code
from jobman.spec.codes.document import DOCUMENT_CODES
from jobman.spec.codes.files import FILE_CODES
from jobman.spec.codes.names import NAME_CODES
from jobman.spec.codes.policies import POLICY_CODES
from jobman.spec.codes.registries import REGISTRY_CODES
from jobman.spec.codes.resources import RESOURCE_CODES
from jobman.spec.codes.scheduling import SCHEDULING_CODES
from jobman.spec.codes.values import VALUE_CODES

CODES: dict[str, Code] = {
    code.id: code
    for family in (
        FILE_CODES,
        DOCUMENT_CODES,
        VALUE_CODES,
        NAME_CODES,
        RESOURCE_CODES,
        POLICY_CODES,
        REGISTRY_CODES,
        SCHEDULING_CODES,
    )
    for code in family
}

__all__ = ["CODES", "Code"]
