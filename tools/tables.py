"""Tables of features, as several pages have them."""

from __future__ import annotations

from jobman.engines.features import Support

SECTIONS = {
    1: "Document",
    2: "Tasks",
    3: "Groups",
    4: "Resources",
    5: "Attributes",
    6: "Requires and steps",
    7: "Policies",
}


def way(support: Support, mark: str = "") -> str:
    """How an engine realises a feature, in the cell of a table."""
    how = f"{support.how}{mark}"
    return cell(f"{how}: {support.note}" if support.note else how)


def cell(text: str) -> str:
    return text.replace("|", chr(92) + "|")
