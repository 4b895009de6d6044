"""Devices: claims on them by class."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import Node

from jobman.spec.kinds import Flag, Forms, Items, Text, Whole
from jobman.spec.names import LABEL_KEY, NAME, WORD
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record


class Device(Record, frozen=True, kw_only=True, rename={"class_": "class"}):
    """A claim on devices by class."""

    noun = "a device"
    class_: Annotated[str, Key(LABEL_KEY, "device class", name="class", required=True)]
    name: Annotated[str | None, Key(NAME, "name of the claim")] = None
    count: Annotated[int, Key(Whole(1, 1024), "how many")] = 1
    selectors: Annotated[
        tuple[str, ...], Key(Items(WORD, single=True), "expressions a device must satisfy")
    ] = ()
    shared: Annotated[bool, Key(Flag(), "all copies share one claim")] = False


class _DeviceClass(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = LABEL_KEY.read(node, reading)
        return BAD if name is BAD else Device(class_=name)


DEVICES = Items(Forms("a device", scalar=_DeviceClass(), mapping=Of(Device)), "a list of devices")
