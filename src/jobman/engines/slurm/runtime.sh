# -- Slurm's part --------------------------------------------------------------------------------------------

# Which copy this is, and where.
place() {
    NODE=${SLURMD_NODENAME:-$(hostname)} ALL_CORES=${SLURM_CPUS_ON_NODE:-1}
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

allocation() {
    local names
    NODES=$SLURM_JOB_NODELIST NNODES=$SLURM_JOB_NUM_NODES NODELIST=$SLURM_JOB_NODELIST
    if [[ $NODELIST == *[,[]* ]]; then
        names=$(scontrol show hostnames "$NODELIST")
        NODELIST=${names//$'\n'/,}
    fi
}

element() { printf '%s' "${SLURM_ARRAY_TASK_ID:-0}"; }

# To copies of a step: a signal that those who do not listen for it do not notice.
stop_step() {
    if [[ ${STEP:-} ]]; then
        scancel --signal=URG "$SLURM_JOB_ID.$STEP" 2>/dev/null
    elif [[ -e $folder/0.began ]]; then
        IFS=$'\t' read -r _ STEP _ <"$folder/0.began"
        scancel --signal=URG "$SLURM_JOB_ID.$STEP" 2>/dev/null
    else
        kill -TERM "$PID" 2>/dev/null
    fi
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

# Those that wait go at once; those that run are asked, and end as their grace allows.
cancel_pieces() {
    ids_of "$@"
    ((${#IDS[@]})) || return 0
    scancel --state=PENDING "${IDS[@]}" 2>/dev/null
    scancel --batch --signal=URG --state=RUNNING "${IDS[@]}" 2>/dev/null
    return 0
}
