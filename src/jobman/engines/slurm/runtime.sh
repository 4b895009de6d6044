# -- Slurm's part --------------------------------------------------------------------------------------------

# Which copy this is, and where.
place() {
    NODE=${SLURMD_NODENAME:-$HOSTNAME} ALL_CORES=${SLURM_CPUS_ON_NODE:-1}
    if [[ $DIRECT ]]; then
        RANK=0 STEP=
    else
        RANK=${SLURM_PROCID:-0} STEP=${SLURM_STEP_ID:-} NODES=${SLURM_STEP_NODELIST:-$NODE}
    fi
    local each
    NODE_RANK=0
    for each in ${NODELIST//,/ }; do
        [[ $each != "$NODE" ]] || return 0
        ((++NODE_RANK))
    done
    NODE_RANK=0
}

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
    NODES=$SLURM_JOB_NODELIST NNODES=$SLURM_JOB_NUM_NODES NODELIST=$SLURM_JOB_NODELIST
    if [[ $NODELIST == *[,[]* ]]; then
        names=$(scontrol show hostnames "$NODELIST")
        NODELIST=${names//$'\n'/,}
    fi
}

# To copies of a step: a signal that those who do not listen for it do not notice.
stop_step() {
    signal_step URG || kill -TERM "$PID" 2>/dev/null
}

signal_step() { # SIGNAL
    [[ ${STEP:-} ]] || { [[ -e $folder/0.began ]] && IFS=$'\t' read -r _ STEP _ <"$folder/0.began"; } || return
    # Slurm knows this one by its number alone.
    scancel --signal="${1/WINCH/28}" "$SLURM_JOB_ID.$STEP" 2>/dev/null
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
    scontrol "$how" "$id" && sleep 600
}

# Those that wait go at once; those that run are asked, and end as their grace allows.
cancel_pieces() {
    ids_of "$@"
    ((${#IDS[@]})) || return 0
    scancel --state=PENDING "${IDS[@]}" 2>/dev/null
    scancel --batch --signal=URG --state=RUNNING "${IDS[@]}" 2>/dev/null
    return 0
}
