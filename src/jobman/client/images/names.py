"""Names of images: what they consist of, how a document writes them, and which of them a pattern means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from jobman.client.images.errors import WrongName
from jobman.settings.registries import is_host
from jobman.spec.suggest import closest

_REPOSITORY = re.compile(
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,}")
_ATTACHED = re.compile(r"sha256-[0-9a-f]{64}(?:\..+)?")
_WILD = re.compile(r"[*?\[]")
_LONGEST = 512
LATEST = "latest"


class Reference(NamedTuple):
    """`host/repository:tag@digest`; what is not written is empty."""

    host: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        """What a registry is asked for: the digest, which cannot change, before the tag."""
        return self.digest or self.tag


def parse(text: str) -> Reference:
    """The parts of a name; raises WrongName."""
    host, rest = split_host(text.strip())
    rest, _, digest = rest.partition("@")
    repository, colon, tag = rest.partition(":")
    wrong = (
        _REPOSITORY.fullmatch(repository) is None
        or (bool(colon) and _TAG.fullmatch(tag) is None)
        or ("@" in text and _DIGEST.fullmatch(digest) is None)
        or (bool(host) and not is_host(host))
    )
    if wrong:
        small = repository.lower()
        hint = f"; names have small letters: `{small}`" if _REPOSITORY.fullmatch(small) else ""
        raise WrongName(
            f"'{text}' is not the name of an image", f"write `[host[:port]/]name[:tag][@digest]`{hint}"
        )
    return Reference(host.lower(), repository, tag, digest)


def split_host(text: str) -> tuple[str, str]:
    """The host that a name begins with, and the rest; a first part without dot and port is no host."""
    first, slash, rest = text.partition("/")
    return (first, rest) if slash and ("." in first or ":" in first or first == "localhost") else ("", text)


def is_repository(name: str) -> bool:
    """Whether a registry may call an image so; what it may not is neither asked for nor printed."""
    return len(name) <= _LONGEST and _REPOSITORY.fullmatch(name) is not None


def shortened(full: str, prefix: str) -> str:
    """How a document writes a full name: without the prefix that is put before names without a host."""
    rest = full.removeprefix(prefix)
    return rest if prefix and rest and not split_host(rest)[0] else full


def is_wild(pattern: str) -> bool:
    """Whether it is more than a part of a name."""
    return _WILD.search(pattern) is not None


def matches(repository: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns means a repository, or there are none.

    A plain word means every name it is a part of. One with `*`, `?` or `[…]` has to match the whole name, or
    its end behind a `/`.
    """
    given = [pattern.lower() for pattern in patterns]
    return not given or any(_matches(repository.lower(), pattern) for pattern in given)


def _matches(repository: str, pattern: str) -> bool:
    if not is_wild(pattern):
        return pattern in repository
    parts = repository.split("/")
    return any(fnmatchcase("/".join(parts[start:]), pattern) for start in range(len(parts)))


def ends_with(repository: str, name: str) -> bool:
    """Whether a repository is what a name without its folders means."""
    return repository == name or repository.endswith(f"/{name}")


def meant(name: str, known: Iterable[str]) -> str | None:
    """The repository that was probably meant: by its whole name, or by the last part of it."""
    names = sorted(known)
    if (whole := closest(name, names)) is not None:
        return whole
    last = name.rpartition("/")[2]
    by_last = {each.rpartition("/")[2]: each for each in reversed(names)}
    found = closest(last, by_last)
    return by_last[found] if found is not None else None


def visible(tags: Iterable[str]) -> list[str]:
    """Tags that people gave, the highest version first and `latest` before all.

    Left out are those that tools give to signatures and other things that belong to an image.
    """
    own = [tag for tag in tags if _TAG.fullmatch(tag) and _ATTACHED.fullmatch(tag) is None]
    return sorted(own, key=lambda tag: (tag == LATEST, _version(tag)), reverse=True)


def _version(tag: str) -> list[tuple[int, int, str]]:
    """Numbers by their value, and a version before what is only on the way to it (`1.0` before `1.0-rc1`)."""
    parts = re.findall(r"\d+|[^\W\d]+", tag.replace("_", "."))
    known = [(1, int(part), "") if part.isdigit() else (-1, 0, part.lower()) for part in parts]
    return [*known, (0, 0, "")]
