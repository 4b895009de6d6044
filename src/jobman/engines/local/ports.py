"""Ports: free ones are found for copies that ask by name, and none is given to two."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable, Sequence

from jobman.engines.local.orders import CannotRun
from jobman.spec.networks import Port

PortsOfCopy = dict[str, int]
"""From the name of a port, or its number where it has no name, to its number."""
_TRIES = 200
_KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


class Ports:
    """The ports given to the copies of one machine; all of its nodes share them."""

    def __init__(self) -> None:
        self._given: Counter[int] = Counter()

    def find(self, ports: Sequence[Port], copies: int) -> tuple[PortsOfCopy, ...]:
        """The ports of each copy: numbers as they are, for names without one a free port of its own."""
        found: list[PortsOfCopy] = []
        try:
            for _ in range(copies):
                found.append({})
                for port in ports:
                    found[-1][label(port)] = self._take(port)
        except CannotRun:
            self.give_back(found)
            raise
        return tuple(found)

    def hold(self, ports: Iterable[PortsOfCopy]) -> None:
        """Give these to nobody else, until they are given back."""
        self._given.update(number for each in ports for number in each.values())

    def give_back(self, ports: Iterable[PortsOfCopy]) -> None:
        self._given -= Counter(number for each in ports for number in each.values())

    def _take(self, port: Port) -> int:
        number = self._free(port) if port.port is None else port.port
        self._given[number] += 1
        return number

    def _free(self, port: Port) -> int:
        # Until one is found that was not given away, all are kept open: else the same would come again.
        refused: list[socket.socket] = []
        try:
            for _ in range(_TRIES):
                listener = _listen(port.protocol)
                refused.append(listener)
                number: int = listener.getsockname()[1]
                if number not in self._given:
                    return number
        except OSError as error:
            raise CannotRun(f"no free port was found for `{label(port)}`: {error.strerror}") from None
        finally:
            for listener in refused:
                listener.close()
        raise CannotRun(f"no free port was found for `{label(port)}`")


def label(port: Port) -> str:
    """What a port is called: by its name, else by its number."""
    return port.name or str(port.port)


def port_number(reference: str, ports: PortsOfCopy) -> int:
    """The number that a check means by a number or a name."""
    return int(reference) if reference.isdigit() else ports[reference]


def _listen(protocol: str) -> socket.socket:
    listener = socket.socket(socket.AF_INET, _KINDS.get(protocol, socket.SOCK_STREAM))
    # On all addresses: the program may listen on any of them.
    listener.bind(("", 0))
    return listener
