"""WebSockets: what a client writes a server can read, and the other way round; nonsense is refused."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.kubernetes.websocket import (
    BINARY,
    CLOSE,
    LONGEST_MESSAGE,
    PING,
    TEXT,
    Message,
    ProtocolError,
    Reader,
    check_opening,
    frame,
    masked,
    opening,
)

SIZES = st.sampled_from([0, 1, 125, 126, 127, 65535, 65536])
DATA = st.binary(max_size=300) | SIZES.map(lambda size: bytes(size))
KINDS = st.sampled_from([TEXT, BINARY])


def served(kind: int, data: bytes, *, last: bool = True) -> bytes:
    """A frame as a server sends it."""
    first = bytes([(0x80 if last else 0) | kind])
    size = len(data)
    if size < 126:
        return first + bytes([size]) + data
    wide = 2 if size < 1 << 16 else 8
    return first + bytes([126 if wide == 2 else 127]) + size.to_bytes(wide) + data


def unmasked(sent: bytes) -> bytes:
    """What a server sees in the frame of a client, as if it had none of its mask."""
    head = 2 + {126: 2, 127: 8}.get(sent[1] & 0x7F, 0)
    assert sent[1] & 0x80
    mask, data = sent[head : head + 4], sent[head + 4 :]
    return sent[:1] + bytes([sent[1] & 0x7F]) + sent[2:head] + masked(data, mask)


@given(KINDS, DATA)
def test_what_a_client_writes_can_be_read(kind: int, data: bytes) -> None:
    assert list(Reader().feed(unmasked(frame(kind, data)))) == [Message(kind, data)]


@given(st.binary(max_size=100), st.binary(min_size=4, max_size=4))
def test_a_mask_comes_off_again(data: bytes, mask: bytes) -> None:
    assert masked(masked(data, mask), mask) == data
    assert masked(data, mask) == bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


@given(st.lists(st.tuples(KINDS, st.binary(max_size=200)), max_size=5), st.data())
def test_messages_are_read_however_they_are_cut(
    messages: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(served(kind, payload) for kind, payload in messages)
    reader = Reader()
    read: list[Message] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        read += reader.feed(stream[:size])
        stream = stream[size:]
    assert read == messages


@given(KINDS, st.lists(st.binary(max_size=50), min_size=1, max_size=5))
def test_the_parts_of_a_message_are_joined_and_words_between_them_come_at_once(
    kind: int, parts: list[bytes]
) -> None:
    reader = Reader()
    read: list[Message] = []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        read += reader.feed(served(kind if place == 0 else 0, part, last=last))
        if not last:
            assert list(reader.feed(served(PING, b"hello"))) == [(PING, b"hello")]
    assert read == [(kind, b"".join(parts))]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(bytes([0x80 | 0x40 | BINARY, 0]), id="a reserved bit"),
        pytest.param(bytes([0x80 | 3, 0]), id="a kind that nobody knows"),
        pytest.param(unmasked(frame(TEXT, b"x"))[:1] + b"\x81" + b"\0\0\0\0x", id="a mask of a server"),
        pytest.param(served(CLOSE, b"", last=False), id="the end in parts"),
        pytest.param(bytes([0x80 | PING, 126, 0, 200]), id="a long word about the connection"),
        pytest.param(served(0, b"x"), id="a part of nothing"),
        pytest.param(served(TEXT, b"x", last=False) + served(TEXT, b"y"), id="a message within another"),
        pytest.param(bytes([0x80 | BINARY, 127]) + (LONGEST_MESSAGE + 1).to_bytes(8), id="too much"),
    ],
)
def test_nonsense_is_refused(sent: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Reader().feed(sent))


@given(st.binary(max_size=100))
def test_whatever_comes_is_read_or_refused(sent: bytes) -> None:
    with suppress(ProtocolError):
        assert all(isinstance(message, Message) for message in Reader().feed(sent))


def test_an_answer_has_to_prove_that_it_is_to_our_opening() -> None:
    headers, proof = opening("v5.channel.k8s.io")
    key = headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    right = base64.b64encode(hashlib.sha1(key).digest()).decode()
    answer = {"Sec-WebSocket-Accept": right, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}
    check_opening(answer, proof, "v5.channel.k8s.io")
    for wrong in ({**answer, "Sec-WebSocket-Accept": "x"}, {"Sec-WebSocket-Accept": right}):
        with pytest.raises(ProtocolError):
            check_opening(wrong, proof, "v5.channel.k8s.io")
