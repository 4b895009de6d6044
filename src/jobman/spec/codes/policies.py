"""JS7xx: policies."""

from __future__ import annotations

from jobman.spec.codes.catalogue import Code, error, warning

POLICY_CODES: tuple[Code, ...] = (
    error("JS701", "rule for nothing", "this rule names no failure", "add `exit_codes`, `reasons` or `replicas`", "A failure rule needs something to match."),
    error("JS702", "success of nothing", "`success` says neither which replicas nor how many", "add `replicas` or `count`", "A success policy names replicas, a number of them, or both."),
    error("JS703", "one probe per check", "a check needs exactly one of `exec`, `http` and `tcp`; found {found}", "keep one of them", "A check runs a command, makes a request or opens a connection."),
    error("JS704", "one origin per entry", "an entry needs exactly one of `secret`, `config` and `file`; found {found}", "keep one of them, and write the others as entries of their own", "Each entry of `env_from` names one origin."),
    error("JS705", "volume lacks a key", "a volume of kind `{kind}` needs `{key}`", "add `{key}`", "Every kind of volume has keys of its own."),
    error("JS706", "key of another kind of volume", "a volume of kind `{kind}` has no `{key}`", "it knows {known}", "Every kind of volume has keys of its own."),
    error("JS707", "port without name and number", "a port needs a `name` or a `port` number", "add one of them", "A port without a number gets a free one, found through its name."),
    error("JS708", "privileged without new privileges", "`privileged` and `no_new_privileges` exclude each other", "remove one of them", "A privileged copy has every right already."),
    error("JS710", "more completions than replicas", "{completions} completions need as many replicas, and there are {replicas}", "write `replicas: {completions}`, or fewer completions", "A task is done when so many of its replicas succeeded."),
    warning("JS711", "limit never reached", "more than {max_failed} of {replicas} replicas cannot fail", "write a smaller `max_failed`, or leave it out", "`max_failed` gives up when more replicas failed."),
    error("JS712", "no such replica", "there is no replica {index}: there are {replicas}, counted from 0", "write numbers from 0 to {last}", "Replicas are numbered from zero."),
    error("JS713", "more successes than replicas", "{count} successes are asked of {replicas} replicas", "write a smaller `count`", "`success.count` counts the replicas that `success.replicas` names, or all."),
    error("JS715", "restart of no group", "`restart-group` needs a group to restart", "put the task into a group, or use `retry`", "The action restarts the group that surrounds the task."),
    error("JS716", "signal before the start", "the signal comes {before} before a limit of {duration}", "write a shorter `before`", "The signal is sent so long before the time limit."),
    error("JS717", "unknown port", "there is no port `{name}`", "{hint}", "A check names a port from `ports`, or gives its number."),
    error("JS718", "window closes before it opens", "`latest` is before `earliest`", "swap them, or widen the window", "A job starts between the two moments."),
    error("JS719", "restarts for ever", "`restart: always` never ends without `service: true`", "write `restart: on-failure`, or make it a service", "A task that is always started again cannot be waited for."),
    error("JS720", "name given twice", "the {what} `{name}` is given twice", "rename or remove one of them", "Volumes, ports, devices and secrets are told apart by their names."),
    error("JS721", "mounted twice", "`{path}` has two volumes: `{first}` and `{second}`", "give each its own path", "One path, one volume."),
    warning("JS722", "signal without a limit", "there is no `duration` before which the signal could be sent", "write a `duration`", "The signal warns of the time limit; without one it is never sent."),
)
