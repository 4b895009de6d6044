import socket

import pytest

from jobman.engines.local.ports import Ports, port_number
from jobman.spec.networks import Port


def test_a_number_is_as_it_is():
    assert Ports().find([Port(port=8080), Port(name="web", port=443)], 1) == ({"8080": 8080, "web": 443},)


def test_a_name_without_a_number_gets_a_port_that_is_free():
    ((found),) = Ports().find([Port(name="web")], 1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", found["web"]))


def test_every_copy_and_every_name_gets_a_port_of_its_own():
    found = Ports().find([Port(name="web"), Port(name="metrics"), Port(name="dns", protocol="udp")], 20)
    numbers = [number for each in found for number in each.values()]
    assert len(set(numbers)) == 60


def test_a_port_is_not_given_again_until_it_was_given_back(monkeypatch):
    offered = iter([5000, 5000, 5001, 5000])
    monkeypatch.setattr("jobman.engines.local.ports._listen", lambda _protocol: _Listener(next(offered)))
    ports = Ports()
    first = ports.find([Port(name="web")], 1)
    second = ports.find([Port(name="web")], 1)
    ports.give_back(first)
    third = ports.find([Port(name="web")], 1)
    assert [each[0]["web"] for each in (first, second, third)] == [5000, 5001, 5000]


def test_ports_of_an_earlier_engine_are_not_given_again(monkeypatch):
    offered = iter([5000, 5001])
    monkeypatch.setattr("jobman.engines.local.ports._listen", lambda _protocol: _Listener(next(offered)))
    ports = Ports()
    ports.hold([{"web": 5000}])
    assert ports.find([Port(name="web")], 1) == ({"web": 5001},)


@pytest.mark.parametrize(("reference", "number"), [("8080", 8080), ("web", 5000)])
def test_a_check_means_a_port_by_number_or_name(reference, number):
    assert port_number(reference, {"web": 5000}) == number


class _Listener:
    def __init__(self, number: int) -> None:
        self.number = number

    def getsockname(self) -> tuple[str, int]:
        return "", self.number

    def close(self) -> None:
        pass
