"""Did you mean …? By what people type by habit, then by edit distance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def closest(word: str, known: Iterable[str], habits: Mapping[str, str] | None = None) -> str | None:
    """The known word that was probably meant, or None where a guess would mislead."""
    folded = word.strip().lower().replace("-", "_")
    candidates = sorted(known)
    meant = (habits or {}).get(folded)
    if meant in candidates:
        return meant
    for candidate in candidates:
        if candidate.lower().replace("-", "_") == folded:
            return candidate
    limit = 1 if len(folded) < 5 else 2 if len(folded) < 9 else 3
    best = min(candidates, key=lambda c: (distance(folded, c.lower(), limit), c), default=None)
    if best is not None and len(folded) > 1 and distance(folded, best.lower(), limit) <= limit:
        return best
    return None


def distance(a: str, b: str, limit: int = 10) -> int:
    """Edits between two words, swapped neighbours counting one; above `limit` any larger number."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def did_you_mean(meant: str | None, otherwise: str) -> str:
    """The advice for a word that is not known: the one that was meant, or what there is instead."""
    return f"did you mean `{meant}`?" if meant else otherwise


def listing(words: Iterable[str], most: int = 12) -> str:
    """Names for a sentence: `a`, `b` and `c`, shortened where there are many."""
    names = [f"`{word}`" for word in words]
    if len(names) > most:
        return ", ".join(names[:most]) + f" and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
