"""How asking a registry can end badly: a sentence, an advice, and the exit code of the command line."""

from __future__ import annotations


class RegistryError(Exception):
    """Something that a person has to be told; `code` is a word that stays the same."""

    code: str = "cannot"
    exit_code: int = 4

    def __init__(self, message: str, advice: str = "") -> None:
        # Words of registries are in it, and go to a terminal.
        self.message = _printable(message)
        self.advice = _printable(advice)
        super().__init__(self.message)


class WrongName(RegistryError):
    """What was asked for is no image, or could be several."""

    code = "bad-request"
    exit_code = 2


class WrongSettings(RegistryError):
    """A file that the settings name cannot be used."""

    code = "bad-settings"
    exit_code = 3


class NotFound(RegistryError):
    """There is no such image, tag or project; `guess` is the repository that was probably meant."""

    code = "not-found"
    exit_code = 1

    def __init__(self, message: str, advice: str = "", guess: str | None = None) -> None:
        super().__init__(message, advice)
        self.guess = guess


class NoCatalog(RegistryError):
    """The registry does not tell which images it has."""


class Unreachable(RegistryError):
    """Nobody answers, or somebody who is no registry."""

    code = "unreachable"
    exit_code = 5


class Denied(RegistryError):
    """The registry does not know who asks, or does not let them."""

    code = "forbidden"
    exit_code = 6


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)
