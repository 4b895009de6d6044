"""JS1xx: the structure of the document."""

from __future__ import annotations

from jobman.spec.codes.catalogue import Code, error, warning

DOCUMENT_CODES: tuple[Code, ...] = (
    error(
        "JS101",
        "unknown key",
        "{noun} has no key `{key}`",
        "{hint}",
        "Unknown keys are errors: a misspelt key that is ignored costs a night of computing.",
    ),
    error(
        "JS102",
        "key one level too deep",
        "{noun} has no key `{key}`",
        "{where}: take it out one level",
        "The key exists, but further out: it is indented too far. `jobman check --fix` moves a block out of `resources`.",
    ),
    error(
        "JS103",
        "another kind of value",
        "expected {noun}, found {found}",
        "{hint}",
        "Every key takes one kind of value, or a short and a long form. The message says which.",
    ),
    error(
        "JS104",
        "key without a value",
        "this {what} is left empty",
        "write {noun}, or remove the {what}",
        "A key with nothing behind it is neither set nor absent. Often the value is indented wrongly, or was meant to be filled in later.",
    ),
    error(
        "JS105",
        "key missing",
        "{noun} needs the key `{key}`",
        "add `{key}`: {doc}",
        "Some keys cannot be left out.",
    ),
    error(
        "JS106",
        "key one level too high",
        "{noun} has no key `{key}`",
        "`{real}` goes under `{inner}`: `{inner}: {{{real}: …}}`",
        "The key exists, but inside another key of this mapping.",
    ),
    error(
        "JS107",
        "key of an earlier draft",
        "{noun} has no key `{key}`",
        "{hint}",
        "Earlier drafts of the language had this key, or other tools do. It has a better place now.",
    ),
    warning(
        "JS110",
        "no version",
        "the document has no `version`; 1 is assumed",
        "start it with `version: 1`",
        "The version of the language keeps old documents readable for ever. `jobman check --fix` adds it.",
    ),
    error(
        "JS111",
        "unknown version",
        "version {version} of the language is not understood",
        "this jobman understands version {known}",
        "The document was written for another version of jobman.",
    ),
    error(
        "JS112",
        "a list at the top level",
        "the document is a list; it must be a mapping",
        "put `version: 1` and `{key}:` before the list",
        "A document is a mapping with keys such as `version`, `tasks` and `groups`. A bare list of tasks belongs under `tasks`; `jobman check --fix` puts it there.",
    ),
    error(
        "JS113",
        "not a document",
        "the document is {found}; it must be a mapping",
        "start with `version: 1` and a list of `tasks`",
        "A document is a mapping with keys such as `version`, `tasks` and `groups`.",
    ),
    error(
        "JS114",
        "nothing to run",
        "the document has neither `tasks` nor `groups`",
        'add at least one task: `tasks: [{{command: ["echo", "hello"], resources: {{type: node, count: 1}}}}]`',
        "A job runs tasks, alone or in groups.",
    ),
    error(
        "JS115",
        "several documents",
        "the file holds {count} documents where one is expected",
        "use `jobman.load_all`, or split the file at `---`",
        "Documents separated by `---` are jobs of their own.",
    ),
)
