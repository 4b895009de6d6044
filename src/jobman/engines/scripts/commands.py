"""Commands of a manager: run, tried again where that may help, and their errors told apart."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_PATIENCE = 120.0


class Said(msgspec.Struct, frozen=True):
    """What a command said."""

    code: int
    out: str
    error: str

    @property
    def words(self) -> str:
        """The last thing it complained of."""
        lines = [line for line in self.error.splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"exit code {self.code}"


class NotThere(Exception):
    """The manager's commands are not on this machine, or nobody answers them."""

    def __init__(self, message: str, advice: str = "", *, is_absent: bool = False) -> None:
        super().__init__(message)
        self.advice = advice
        self.is_absent = is_absent
        """Whether there is nobody to ask: then nothing was done, either."""


class Failed(Exception):
    """A command that the manager refused."""

    def __init__(self, said: Said, command: str) -> None:
        super().__init__(f"{command}: {_bare(said.words, command)}")
        self.said = said


def _bare(words: str, command: str) -> str:
    """A complaint without the name of who complains."""
    return words.removeprefix(f"{command}: ").removeprefix("error: ").removeprefix("fatal: ")


class Commands:
    """Runs the commands of one manager."""

    def __init__(
        self,
        name: str,
        is_transient: Callable[[str], bool],
        environment: Mapping[str, str] | None = None,
        pauses: Sequence[float] = _PAUSES,
        is_absent: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._name = name
        self._is_transient = is_transient
        self._environment = environment
        self._pauses = pauses
        self._is_absent = is_absent

    def once(
        self,
        *words: str,
        text: str | None = None,
        environment: Mapping[str, str] | None = None,
        lock: int | None = None,
    ) -> Said:
        """Run a command, whatever it says; its environment may be that of somebody's submission.

        A lock that it is given is held as long as it runs, though whoever started it be dead.
        """
        try:
            done = subprocess.run(
                words,
                input=text,
                stdin=subprocess.DEVNULL if text is None else None,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE,
                env=self._environment if environment is None else environment,
                pass_fds=() if lock is None else (lock,),
                check=False,
            )
        except FileNotFoundError:
            raise NotThere(
                f"{self._name} is not on this machine: there is no command {words[0]}",
                f"run jobman where {words[0]} works, or choose another engine",
                is_absent=True,
            ) from None
        except subprocess.TimeoutExpired:
            return Said(1, "", f"{words[0]} did not answer within {_PATIENCE:.0f} s")
        said = Said(done.returncode, done.stdout, done.stderr)
        if said.code != 0 and self._is_absent(said.error):
            words_of_it = _bare(said.words, words[0])
            advice = f"run jobman where {words[0]} works, or choose another engine"
            message = f"{self._name} is not set up on this machine: {words_of_it}"
            raise NotThere(message, advice, is_absent=True)
        return said

    def is_transient(self, said: Said) -> bool:
        """Whether the same command may succeed in a while."""
        return said.code != 0 and self._is_transient(said.error)

    def ask(self, *words: str, text: str | None = None) -> str:
        """Run a command that may be run again; raises NotThere where nobody answers for long."""
        said = self.once(*words, text=text)
        for pause in self._pauses:
            if not self.is_transient(said):
                break
            time.sleep(pause)
            said = self.once(*words, text=text)
        if self.is_transient(said):
            raise NotThere(f"{self._name} does not answer: {said.words}", "try again in a while")
        if said.code != 0:
            raise Failed(said, words[0])
        return said.out
