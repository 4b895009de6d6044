"""Words for amounts of resources: `4 cores, 8 GiB memory, 1 gpu`."""

from __future__ import annotations

MAKER = "gpu."
"""Before the maker of a GPU, where those of each are told apart beside the sum of all."""
UNITS = {"core": "cores", "gpu": "gpus", "socket": "sockets", "node": "nodes", "slot": "slots"}
_BYTES = ("memory", "storage")
_BINARY = (1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
_DECIMAL = (1000, ("B", "kB", "MB", "GB", "TB", "PB"))


def amounts_of(resources: dict[str, float]) -> str:
    """All of them, in one line."""
    said = []
    for kind, amount in resources.items():
        if not kind.startswith(MAKER):
            noun = kind if amount == 1 else UNITS.get(kind, kind)
            said.append(f"{amount_of(kind, amount)} {noun}{_makers(resources) if kind == 'gpu' else ''}")
    return ", ".join(said)


def _makers(resources: dict[str, float]) -> str:
    """Of whom the GPUs are, and how many of each where there are several."""
    made = {kind.removeprefix(MAKER): each for kind, each in resources.items() if kind.startswith(MAKER)}
    if len(made) < 2:
        return "".join(f" ({maker})" for maker in made)
    return f" ({', '.join(f'{amount:,g} {maker}' for maker, amount in made.items())})"


def amount_of(kind: str, amount: float) -> str:
    """One of them, without its noun."""
    return size(amount) or "0" if kind in _BYTES else f"{amount:,g}"


def size(count: float) -> str:
    """Bytes as people say them: `1.5 GiB`, and `2 GB` for what was written in powers of ten."""
    is_round = count >= 10**6 and count % 10**6 == 0 and count % 2**20 != 0
    base, units = _DECIMAL if is_round else _BINARY
    for unit in units[:-1]:
        if count < base:
            return _sized(count, unit) if count else ""
        count /= base
    return _sized(count, units[-1])


def _sized(count: float, unit: str) -> str:
    return f"{count:.0f} {unit}" if count >= 99.5 or count == int(count) else f"{count:.1f} {unit}"
