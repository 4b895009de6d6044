# -- a heterogeneous job -------------------------------------------------------------------------------------

# What Slurm tells of each component, in the order of the parts.
of_components() { # VARIABLE
    local number name
    EACH=()
    for ((number = 0; number < SLURM_HET_SIZE; number++)); do
        name=$1_HET_GROUP_$number
        EACH+=("${!name}")
    done
}

# One step on all components, each of which has the same command.
together() { # FIRST:COPIES:CORES:GPUS... -- OPTION... : OPTION... -- COMMAND...
    local word options=() words=(srun)
    while [[ $1 != -- ]]; do shift; done
    while shift && [[ $1 != -- ]]; do options+=("$1"); done
    shift
    for word in "${options[@]}"; do
        [[ $word != : ]] || words+=("$@")
        words+=("$word")
    done
    exec "${words[@]}" "$@"
}

place_together() { part_of "$RANK"; }

steps_together() {
    of_components SLURM_JOB_ID
    EACH=("${EACH[@]/%/.$STEP}")
}

# On every node, one component after the other: what comes in would reach the first of a step alone.
on_components() { # COMMAND...
    local number
    of_components SLURM_JOB_NUM_NODES
    for number in "${!EACH[@]}"; do
        srun --overlap --mem=0 --het-group="$number" --nodes="${EACH[number]}" --ntasks="${EACH[number]}" \
            --ntasks-per-node=1 "$@" </proc/self/fd/0 || return
    done
}
