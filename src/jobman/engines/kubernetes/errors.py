"""How a cluster can refuse: exceptions with the words of the server, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jobman.engines.kubernetes.objects import Status, StatusCause
from jobman.engines.kubernetes.roles import ANONYMOUS, Need, needed, role_yaml

WRONG_USE, CANNOT, UNREACHABLE, REFUSED = 2, 4, 5, 6


class KubernetesError(Exception):
    """Something that a person has to be told: a sentence, an advice and the exit code of the command line."""

    exit_code: int = CANNOT

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class ConfigError(KubernetesError):
    """The kubeconfig, or something it names, cannot be used."""

    exit_code = WRONG_USE


class WrongName(KubernetesError):
    """No object can have this name."""

    exit_code = WRONG_USE


class LoginError(KubernetesError):
    """Who we are could not be found out: a plugin failed, or a file of it cannot be read."""

    exit_code = REFUSED


class Unreachable(KubernetesError):
    """There is nobody to ask, or the answer did not come."""

    exit_code = UNREACHABLE

    def __init__(self, message: str, advice: str = "", *, maybe_done: bool = False) -> None:
        super().__init__(message, advice)
        self.maybe_done = maybe_done
        """Whether a change may have been made although no answer came."""


class ApiError(KubernetesError):
    """The server answered that it will not."""

    def __init__(self, code: int, status: Status, advice: str = "") -> None:
        super().__init__(status.message or f"The cluster answered {code}.", advice)
        self.code = code
        """The status of HTTP."""
        self.reason = status.reason
        """A word that stays the same, such as NotFound."""
        self.status = status
        self.fields: Sequence[str] = ()
        """Those that the server does not know, or finds wrong."""


class BadRequest(ApiError):
    """The object is not one the server understands."""


class TooEarly(BadRequest):
    """A container has not started yet, or not often enough, to have this log."""


class Unauthorized(ApiError):
    """The server does not know who we are."""

    exit_code = REFUSED


class Forbidden(ApiError):
    """We may not; `need` is what is missing and `role` the YAML that would grant it, where a Role would."""

    exit_code = REFUSED
    need: Need | None = None
    role: str = ""


class NotFound(ApiError):
    """There is none of that name, or the cluster does not know the kind."""


class AlreadyExists(ApiError):
    """The name is taken."""


class Conflict(ApiError):
    """Somebody else changed it in the meantime, or owns the fields."""


class Expired(ApiError):
    """The version to go on from is forgotten: list anew."""


class Invalid(ApiError):
    """The object breaks rules; `causes` say which field breaks which."""

    @property
    def causes(self) -> Sequence[StatusCause]:
        return self.status.details.causes if self.status.details is not None else ()


class TooMany(ApiError):
    """The server asks for a pause, longer than our patience."""

    exit_code = UNREACHABLE


class ServerFault(ApiError):
    """The server, or a webhook it calls, broke."""

    exit_code = UNREACHABLE


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooMany,
}
_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "ResourceExpired": Expired,
    "Gone": Expired,
}
_TOO_EARLY = ("is waiting to start", "previous terminated container")
_PLAIN = "sent an HTTP request to an HTTPS server"
_STRICT = "strict decoding error"
_ADVICE: dict[type[ApiError], str] = {
    Unauthorized: "The token or certificate is wrong or has expired: log in to the cluster anew.",
    AlreadyExists: "Choose another name, or delete what has it.",
    Conflict: "Look at it again, then repeat.",
    Expired: "List it anew.",
    TooMany: "The cluster is busy; try again later.",
    ServerFault: "Try again later; if it stays so, tell whoever runs the cluster.",
}

_UNKNOWN_FIELD = re.compile(r'(?:unknown|duplicate) field "((?:[^"\\]|\\.)+)"')
_UNDECLARED = re.compile(r"(?:^|[\s(])\.?([\w.\[\]\"=-]+): field not declared in schema")

_REFUSALS: tuple[tuple[str, str], ...] = (
    ("exceeded quota", "Wait until something of the namespace ends, ask for less, or for a larger quota."),
    ("failed quota", "The quota of the namespace wants requests and limits to be given: add them."),
    ("violates PodSecurity", "The namespace allows only safer pods: change what the message names."),
    (
        "because it is being terminated",
        "The namespace is being deleted: wait until it is gone, or use another.",
    ),
    ("error looking up service account", "Create the service account, or name another as `identity`."),
    ("no PriorityClass with name", "Name a priority class that the cluster has."),
    ("maximum ", "A LimitRange of the namespace sets the most: ask for less."),
    ("minimum ", "A LimitRange of the namespace sets the least: ask for more."),
)
"""What the answer 403 also says, although no Role would help."""


def from_answer(code: int, body: bytes, path: str = "") -> ApiError:
    """The exception for an answer that is none of 2xx."""
    return from_status(_read(code, body, path), code)


def from_status(status: Status, code: int = 0) -> ApiError:
    """The exception for a `Status`, such as the last line of a watch has it."""
    code = status.code or code
    kind = _kind(code, status)
    error = kind(code, status, _ADVICE.get(kind, ""))
    if isinstance(error, Forbidden):
        _explain_refusal(error)
    elif isinstance(error, Invalid):
        _explain_causes(error)
    elif isinstance(error, NotFound):
        _explain_absence(error)
    if unknown_fields(status.message):
        _explain_fields(error)
    elif _PLAIN in error.message:
        error.advice = "Write https:// before the address of the server in the kubeconfig."
    return error


def _kind(code: int, status: Status) -> type[ApiError]:
    if code == 400 and any(part in status.message for part in _TOO_EARLY):
        return TooEarly
    if code == 500 and unknown_fields(status.message):
        return BadRequest  # a patch that is applied is checked where nothing else can go wrong
    return _BY_REASON.get(status.reason) or _BY_CODE.get(code) or (ServerFault if code >= 500 else ApiError)


def unknown_fields(message: str) -> tuple[str, ...]:
    """The fields that strict validation complains about."""
    found = _UNKNOWN_FIELD.findall(message) or _UNDECLARED.findall(message)
    return tuple(dict.fromkeys(found))


def _read(code: int, body: bytes, path: str) -> Status:
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Not from the API server: a proxy or a load balancer in between, or one of its plain handlers.
        text = " ".join(body[:200].decode(errors="replace").split())
        where = f" at {path}" if path else ""
        status = Status(message=f"The cluster answered {code}{where}{f': {text}' if text else ''}")
    return status


def _explain_refusal(error: Forbidden) -> None:
    need = needed(error.message)
    if need is None:
        error.advice = next((advice for part, advice in _REFUSALS if part in error.message), "")
        return
    if need.user == ANONYMOUS:
        error.need, error.advice = need, "The cluster was not told who you are: log in to it."
        return
    error.need, error.role = need, role_yaml([need])
    error.message = f"{need.who} may not {need.what} {need.where}."
    error.args = (error.message,)
    error.advice = f"Ask whoever runs the cluster for this:\n{error.role}"


def _explain_causes(error: Invalid) -> None:
    error.fields = tuple(dict.fromkeys(cause.field for cause in error.causes if cause.field))
    if error.fields:
        error.advice = f"Look at {', '.join(error.fields)}."


def _explain_absence(error: NotFound) -> None:
    details = error.status.details
    if details is None or not details.name:
        # Without a name the path itself is unknown: a custom resource that is not installed.
        error.advice = "The cluster does not know this kind of object; something is to be installed first."
    elif details.kind == "namespaces":
        error.advice = "Create the namespace, or name another."


def _explain_fields(error: ApiError) -> None:
    error.fields = unknown_fields(error.message)
    names = ", ".join(error.fields)
    error.advice = f"The cluster does not know {names}: is it too old for that, or the name wrong?"
    if _STRICT in error.message and isinstance(error, Invalid):
        # The answer to a patch repeats the whole object before it comes to the point.
        error.message = error.message[error.message.rindex(_STRICT) :]
        error.args = (error.message,)
