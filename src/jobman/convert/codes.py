"""JCxxx: what is told of a conversion. JC1xx are errors, JC2xx remarks that `--strict` turns into errors."""

from __future__ import annotations

from jobman.spec.codes.catalogue import Code, error, warning

CONVERSION_CODES: dict[str, Code] = {
    code.id: code
    for code in (
        error(
            "JC101",
            "unknown option",
            "there is no option `{option}`",
            "{advice}",
            "The option is none of those the original command has.",
        ),
        error(
            "JC102",
            "option without its value",
            "the option `{option}` needs a value",
            "write `{option}` with its value, or remove it",
            "The option was the last word of its line, and it takes a value.",
        ),
        error(
            "JC103",
            "value where none is taken",
            "the option `{option}` takes no value",
            "write `{option}` alone",
            "A value was joined to an option that is only there or not.",
        ),
        error(
            "JC104",
            "ambiguous option",
            "`{option}` may stand for {candidates}",
            "write the option in full",
            "A long option may be shortened as long as it is clear which is meant.",
        ),
        error(
            "JC105",
            "wrong value",
            "`{text}` is no value of `{option}`: {reason}",
            "write {wanted}",
            "The original command would refuse this value, too, or jobman does not understand it.",
        ),
        error(
            "JC106",
            "quote without its partner",
            "the quote `{quote}` is opened here and never closed",
            "close it in the same line",
            "A value in quotes ends in the line it starts in.",
        ),
        error(
            "JC107",
            "word that is no option",
            "`{word}` is no option, and such a line holds options only",
            "remove it, or quote the value it belongs to",
            "Arguments of the script are given where it is submitted, not in its own lines.",
        ),
        error(
            "JC108",
            "not a script",
            "a batch script starts with `#!` and its interpreter; this starts otherwise",
            "write `#!/bin/bash` into the first line",
            "Without the first line nobody knows by which program the script is to be run.",
        ),
        error(
            "JC109",
            "script too long",
            "the script has {size:,} bytes, and a document carries {limit:,} at most",
            "keep the work in a file of its own, and have a short script call it",
            "The script becomes an argument of its interpreter, and the system limits how long one may be.",
        ),
        error(
            "JC110",
            "array of several nodes",
            "an array whose script starts its own steps on {nodes} nodes has no form here",
            "end the script with one plain `srun COMMAND`, or ask for one node",
            "What such a script starts on other nodes is known only while it runs. A script that prepares "
            "its environment and ends with one `srun COMMAND` becomes a task of that many copies instead.",
        ),
        error(
            "JC111",
            "neither a script nor a job specification",
            "this is neither a batch script nor a job specification of Flux",
            "give a script that starts with `#!`, or the JSON or YAML of `flux … --dry-run`",
            "Read are batch scripts of Slurm (`#SBATCH`) and Flux (`#FLUX:`), and Flux's own V1 jobspec.",
        ),
        error(
            "JC112",
            "job specification not understood",
            "{what}",
            "{advice}",
            "The text is no V1 jobspec of Flux, or one that asks for what a JobSpec cannot say.",
        ),
        error(
            "JC113",
            "directive not understood",
            "{what}",
            "{advice}",
            "Directives of a Flux batch script stand in its opening comments, all with the same mark.",
        ),
        error(
            "JC114",
            "line breaks of DOS",
            "the lines of this script end as on DOS",
            "write it anew with plain line ends: `sed -i 's/\\r$//' FILE`",
            "A shell takes the carriage return at the end of a line for a part of its last word.",
        ),
        warning(
            "JC201",
            "not carried over",
            "`{option}` is not carried over: {reason}",
            "{advice}",
            "A JobSpec has nothing that means the same, so the option was left out.",
        ),
        warning(
            "JC202",
            "kept for one engine",
            "`{option}` is kept for {engine} alone",
            "it stands in `attributes.flags` and means the same there; elsewhere {elsewhere}",
            "The option is handed to the engine it was written for, and other engines do not look at it.",
        ),
        warning(
            "JC203",
            "carried over with a difference",
            "`{option}`: {difference}",
            "{advice}",
            "The option is there, and does not mean quite the same.",
        ),
        warning(
            "JC204",
            "line that is not read",
            "this line is not read as options: {reason}",
            "move it up to the other lines with options, or remove it",
            "Options are read before the first command, from lines that start with `#SBATCH`.",
        ),
        warning(
            "JC205",
            "steps on several nodes",
            "outside Slurm all that `{launcher}` starts runs on the first of {nodes} nodes",
            "end the script with one plain `srun COMMAND`, which becomes copies on all of them",
            "The script runs in the driver of a group. On Slurm its `srun` reaches all nodes by itself; "
            "elsewhere a small stand-in starts the copies where the script runs.",
        ),
        warning(
            "JC206",
            "left out for this engine",
            "`{option}` is left out: {reason}",
            "{advice}",
            "The chosen engine refuses what this option asks for, and the script can run without it.",
        ),
        warning(
            "JC207",
            "another name",
            "the name `{text}` becomes `{name}`",
            "a name has letters, digits, `-`, `_` and `.`, at most 63, and starts with a letter or digit",
            "The job is called otherwise; `SLURM_JOB_NAME` keeps the name as it was written.",
        ),
    )
}
