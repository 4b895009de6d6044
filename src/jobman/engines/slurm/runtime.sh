# -- Slurm's part --------------------------------------------------------------------------------------------

# Which copy this is, and where.
place() {
    NODE=${SLURMD_NODENAME:-$HOSTNAME} ALL_CORES=${SLURM_CPUS_ON_NODE:-1}
    if [[ $DIRECT ]]; then
        RANK=0 STEP=
    else
        RANK=${SLURM_PROCID:-0} STEP=${SLURM_STEP_ID:-} NODES=${SLURM_STEP_NODELIST:-$NODE}
        # Where it has several parts, the step is not srun, but what sees to them.
        [[ ${step[0]} == srun ]] || "place_${step[0]}"
    fi
    local each
    NODE_RANK=0
    for each in ${NODELIST//,/ }; do
        [[ $each != "$NODE" ]] || return 0
        ((++NODE_RANK))
    done
    NODE_RANK=0
}

# A step of whole nodes says nothing of cores, and some versions of srun would take those that the job has for a task: all
# but 22.05 and 23.02.
whole() { # COMMAND...
    unset -v SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK
    exec "$@"
}

place_whole() { [[ ! ${cores:-} ]] || export SLURM_CPUS_PER_TASK=$cores; }

steps_whole() { :; }

# A submission of which no answer came may have arrived twice: only the first of both runs.
claim() {
    local mine=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} first=
    set -C
    { echo "$mine" >"$J/claimed/$PIECE"; } 2>/dev/null
    set +C
    [[ -e $J/ambiguous ]] || return 0
    read -r first <"$J/claimed/$PIECE"
    [[ ${first:-$mine} == "$mine" ]]
}

# Why Slurm ends this script: it says so only to those who ask.
why_stopped() {
    local said
    said=$(scontrol --oneliner show job "$SLURM_JOB_ID" 2>/dev/null)
    BECAUSE=cancelled
    [[ $said != *" Reason=TimeLimit "* ]] || BECAUSE=timeout
    if [[ $said =~ " Restarts="([0-9]+) ]] && ((BASH_REMATCH[1] > ${SLURM_RESTART_COUNT:-0})); then BECAUSE=requeued; fi
}

allocation() {
    local names
    ELEMENT=${SLURM_ARRAY_TASK_ID:-0} NODE=${SLURMD_NODENAME:-$HOSTNAME}
    NODES=$SLURM_JOB_NODELIST NNODES=$SLURM_JOB_NUM_NODES
    ! declare -F of_components >/dev/null || { of_components SLURM_JOB_NODELIST && NODES=$(IFS=,; echo "${EACH[*]}"); }
    NODELIST=$NODES
    if [[ $NODELIST == *[,[]* ]]; then
        names=$(scontrol show hostnames "$NODELIST")
        ! declare -F of_components >/dev/null || { names=$(awk '!seen[$0]++' <<<"$names") && NNODES=$(wc -l <<<"$names"); }
        NODELIST=${names//$'\n'/,}
    fi
}

# The cores and GPUs of a copy by the part it is of; no cores stand for all of the node.
part_of() { # RANK
    local each first many
    for each in "${step[@]:1}"; do
        IFS=: read -r first many cores gpus <<<"$each"
        (($1 < first || $1 >= first + many)) || return 0
    done
}

# To copies of a step: a signal that those who do not listen for it do not notice.
stop_step() {
    signal_step URG || kill -TERM "$PID" 2>/dev/null
}

signal_step() { # SIGNAL
    [[ ${STEP:-} ]] || { [[ -e $folder/0.began ]] && IFS=$'\t' read -r _ STEP _ <"$folder/0.began"; } || return
    local each failed='' EACH=("$SLURM_JOB_ID.$STEP")
    [[ ${step[0]} == srun ]] || "steps_${step[0]}"
    # Slurm knows one of them by its number alone, and takes one step of a job at a time.
    for each in "${EACH[@]}"; do scancel --signal="${1/WINCH/28}" "$each" 2>/dev/null || failed=1; done
    [[ ! $failed ]]
}

ids_of() { # PIECE...
    local piece id wanted=" $* "
    IDS=()
    while read -r piece id; do
        [[ $wanted != *" $piece "* ]] || IDS+=("$id")
    done <"$J/ids"
}

release_pieces() {
    ids_of "$@"
    scontrol release "$(IFS=,; echo "${IDS[*]}")" 2>/dev/null
}

# Back to the queue, where it is held unless somebody has released it meanwhile. Slurm ends this script for it.
requeue_piece() {
    local id=$SLURM_JOB_ID how=requeue
    [[ ! ${SLURM_ARRAY_TASK_ID:-} ]] || id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    [[ ! -e $J/held ]] || how=requeuehold
    scontrol "$how" "$id" || return
    # Who released it in this moment found it running.
    [[ $how == requeue || -e $J/held ]] || scontrol release "$id"
    sleep 600
}

# Those that wait go at once; those that run are asked, and end as their grace allows.
cancel_pieces() {
    ids_of "$@"
    ((${#IDS[@]})) || return 0
    scancel --state=PENDING "${IDS[@]}" 2>/dev/null
    scancel --batch --signal=URG --state=RUNNING "${IDS[@]}" 2>/dev/null
    return 0
}
