# -- parts of a task that share nodes of one kind ------------------------------------------------------------

# A step for each part, as Slurm passes no signals on to a step of several parts here. All parts begin, or none: two tasks
# that each had one part of what they need would wait for each other for ever, so one after the other takes its turn.
beside() { # FIRST:COPIES:CORES:GPUS... -- OPTION... : OPTION... -- COMMAND...
    local word firsts=() options=() words=()
    ENDED='' SRUNS=()
    trap end_parts TERM
    while [[ $1 != -- ]]; do
        firsts+=("${1%%:*}")
        shift
    done
    while shift && [[ $1 != -- ]]; do options+=("$1"); done
    shift
    exec {TURN}<"$0"
    until flock -n "$TURN" || [[ $ENDED ]]; do nap 0.2; done
    for word in "${options[@]}" :; do
        if [[ $word != : ]]; then
            words+=("$word")
        elif [[ ! $ENDED ]]; then
            begin_part "$@"
            words=()
        fi
    done
    exec {TURN}<&-
    await_parts
}

begin_part() { # COMMAND...
    local number=${#SRUNS[@]}
    [[ " ${words[*]}" == *" --nodes="* ]] || words+=("--nodes=1-$SLURM_JOB_NUM_NODES")
    whole srun "${words[@]}" "$1" "$2" "FIRST=${firsts[number]} PART=$number MET=${folder@Q}"$'\n'"$3" "${@:4}" {TURN}<&- &
    SRUNS+=($!)
    until [[ -e $folder/part-$number || $ENDED ]]; do
        kill -0 "${SRUNS[number]}" 2>/dev/null || ENDED=1
        nap 0.1
    done
}

await_parts() {
    local number code status=0
    while ((${#SRUNS[@]})); do
        for number in "${!SRUNS[@]}"; do
            ! kill -0 "${SRUNS[number]}" 2>/dev/null || continue
            wait "${SRUNS[number]}"
            code=$?
            unset "SRUNS[number]"
            ((code == 0 || status)) || { status=$code && end_parts; }
        done
        ((${#SRUNS[@]} == 0)) || nap 0.5
    done
    return "$status"
}

# Those that have begun are asked; the others know of nobody who could ask them.
end_parts() {
    local number id
    ENDED=1
    if [[ -e $folder/0.began ]]; then
        signal_step URG
        return
    fi
    for number in "${!SRUNS[@]}"; do
        if read -r id _ <"$folder/part-$number"; then scancel "$SLURM_JOB_ID.$id"; else kill -TERM "${SRUNS[number]}"; fi
    done 2>/dev/null
}

# Copies begin when those of every part are there.
place_beside() {
    local each number=0 nodes=()
    trap 'exit 143' URG TERM
    RANK=$((RANK + FIRST))
    part_of "$RANK"
    if ((RANK == FIRST)); then
        echo "$STEP $NODES" >"$MET/part-$PART.new"
        mv -f "$MET/part-$PART.new" "$MET/part-$PART"
    fi
    for each in "${step[@]:1}"; do
        [[ $each != -- ]] || break
        until [[ -e $MET/part-$number ]]; do sleep 0.1; done
        read -r _ each <"$MET/part-$number"
        nodes+=("$each")
        ((++number))
    done
    NODES=$(IFS=,; echo "${nodes[*]}")
}

steps_beside() {
    local each id
    EACH=()
    for each in "$folder"/part-*; do
        read -r id _ <"$each"
        EACH+=("$SLURM_JOB_ID.$id")
    done
}
