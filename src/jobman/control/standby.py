"""Standing by: what a server answers while another one leads, and while it takes over."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex

from jobman.control.api.endpoint import Receive, Scope, Send, send_failure, send_reply
from jobman.control.api.service import ALIVE, ALIVE_PATH
from jobman.control.refusals import Refusal

_ADVICE = "Ask the server that leads, or this one again in a moment."


class Standby:
    """An ASGI application: it is alive, and refers everybody to somebody else."""

    def __init__(self, words: Callable[[], str]) -> None:
        self._words = words
        """Why it does not answer itself, at this moment."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["type"] != "http":
            return
        if scope["path"] == ALIVE_PATH:
            await send_reply(send, ALIVE)
            return
        await send_failure(send, Refusal("standby", self._words(), _ADVICE), token_hex(8))
