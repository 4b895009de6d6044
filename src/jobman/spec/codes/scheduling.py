"""JS9xx: queues, accounts and the scheduler, in the settings."""

from __future__ import annotations

from jobman.spec.codes.catalogue import Code, error

SCHEDULING_CODES: tuple[Code, ...] = (
    error(
        "JS901",
        "no such queue",
        "there is no queue `{name}`",
        "{hint}",
        "A queue borrows the nodes of another one that the settings have under `queues`, and `default_queue` names one of them.",
    ),
    error(
        "JS902",
        "borrowing from itself",
        "the queue `{name}` borrows from itself",
        "remove it: a queue uses its own nodes anyway",
        "`borrow` lists other queues, on whose nodes a job may run where it ends before the next promise there.",
    ),
    error(
        "JS903",
        "key of another policy",
        "a queue of the policy `interactive` has no `{key}`",
        "remove it, or write `policy: batch`",
        "An interactive queue keeps the order of submission: there is nothing to weigh and nobody passes. A batch queue goes by priority, and `depth` says how many of those who wait have a reservation of their own.",
    ),
    error(
        "JS904",
        "not a part of the whole",
        '"{text}" is no part of a whole',
        "write more than 0 and at most 1, such as `0.3`, or as `30%`",
        "A share is the part of its nodes' resources that a queue may use at one time.",
    ),
    error(
        "JS905",
        "not a depth",
        '"{text}" is not a depth',
        "write `all`, or how many of those who wait have a reservation of their own: `0`, `1`, `64`",
        "0 lets nobody pass (FCFS), 1 protects the first of those who wait (EASY), a number so many, `all` everybody (conservative backfill).",
    ),
    error(
        "JS906",
        "no such account",
        "there is no account `{name}`",
        "{hint}",
        "The `parent` of an account is another account of the settings; one without a parent is at the top.",
    ),
    error(
        "JS907",
        "accounts in a circle",
        "the account `{name}` is below itself{way}",
        "give it another `parent`, or none",
        "Accounts make a tree: from each of them the way up ends at the top.",
    ),
    error(
        "JS908",
        "not an amount",
        '"{text}" is not an amount of {name}',
        "{hint}",
        "Limits count nodes, cores, GPUs and a site's own resources in whole numbers, and memory and storage in sizes such as `512Gi`.",
    ),
    error(
        "JS909",
        "no shares",
        "{what} has no shares",
        "write more than 0; who may use nothing has `active: false`",
        "Shares are compared with those of the accounts and users right below the same parent.",
    ),
)
