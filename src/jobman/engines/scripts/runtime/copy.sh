# -- one copy, on its node -----------------------------------------------------------------------------------

# In the shell of its replica, or in one of its own elsewhere.
copy() {
    local start=$PWD
    place
    HERE=$J/out/$KEY
    is_underway || HERE+=/$ATTEMPT/$RANK
    CODE='' REASON='' SIGNAL='' SAYS='' WHY='' WARNED='' STOPPED='' ASKED='' CHILD='' PORTS='' TIMERS=()
    if [[ $DIRECT ]]; then STOPPED=$STOP; else listen; fi
    scratch_of
    outputs
    fails launch-failed "its output cannot be written"
    if [[ $ERRORS == "$OUTPUT" ]]; then
        inside </dev/null >>"$OUTPUT" 2>&1
    else
        inside </dev/null >>"$OUTPUT" 2>>"$ERRORS"
    fi
    leave
    cd -- "$start" 2>/dev/null || cd /
    return "${CODE:-1}"
}

inside() {
    REASON='' SAYS=''
    if is_underway; then
        work
        stop_timers
    elif surround; enter; then
        now
        # What the machine itself is called: managers may have other names for it.
        [[ ! ${listens:-} ]] || HOST=$(uname -n)$PORTS
        write_down began "$at" "${STEP:-}" "$NODES" "$STARTS" "$NODE" "${HOST:-}"
        [[ ! $DIRECT ]] || started
        ! declare -F timers >/dev/null || timers
        work
        stop_timers
    fi
    [[ ! ${result_file:-} || $result_file -ot $HERE.began ]] || tail -c 4096 -- "$result_file" >"$HERE.result" 2>/dev/null || rm -f "$HERE.result"
    now
    ENDS=
    [[ ! $STARTS ]] || sizes
    write_down end "$at" "$REASON" "$CODE" "$SIGNAL" "${STOPPED:+1}" "$NODE" "$ENDS" "${SAYS//[$'\t\n']/ }"
}

# As a whole, where somebody may look in between; nobody looks at what a copy in the script itself writes.
write_down() { # KIND FIELD...
    local place=$HERE.$1 line
    shift
    printf -v line '%s\t' "$@"
    if [[ $DIRECT ]]; then
        printf '%s\n' "${line%?}" >"$place"
    else
        printf '%s\n' "${line%?}" >"$place.new"
        mv -f "$place.new" "$place"
    fi
}

# Output goes beside what is known of the attempt, or to the files that the document names.
outputs() {
    local stream name file
    STARTS='' OUTPUT=$HERE.out ERRORS=$HERE.err
    for stream in out err; do
        name=std$stream
        [[ ${!name:-} ]] || continue
        file=${!name}
        [[ $file == /* ]] || file=${cwd:-$PWD}/$file
        [[ $stream == err ]] || OUTPUT=$file
        [[ $stream == out ]] || ERRORS=$file
        [[ $stream == out || $ERRORS != "$OUTPUT" ]] || continue
        ln -sfn "$file" "$HERE.$stream"
        STARTS+="$stream:$(stat -Lc %s -- "$file" 2>/dev/null || echo 0) "
    done
}

fails() { # REASON MESSAGE
    REASON=$1 CODE=${3:-} SAYS=$2
    return 1
}

# What a copy finds in its environment.
surround() {
    export JOBMAN_JOB_ID JOBMAN_JOB_NAME JOBMAN_TASK=$name JOBMAN_REPLICA=$INDEX JOBMAN_REPLICAS=$replicas \
        JOBMAN_ATTEMPT=$ATTEMPT JOBMAN_RANK=$RANK JOBMAN_SIZE=$copies JOBMAN_NODE_RANK=$NODE_RANK \
        JOBMAN_NNODES=$NNODES JOBMAN_NODELIST=$NODELIST JOBMAN_CORES=${cores:-$ALL_CORES} JOBMAN_GPUS=${gpus:-0} \
        JOBMAN_SCRATCH
    [[ ! ${coordinator:-} ]] || export JOBMAN_COORDINATOR=${coordinator%%@*}
    ! declare -F peers >/dev/null || peers
}

scratch_of() {
    JOBMAN_SCRATCH=${scratch:-${TMPDIR:-/tmp}}/jobman-$JOBMAN_JOB_ID-${KEY//\//+}-$ATTEMPT
    # Nodes may share the folder.
    [[ $DIRECT ]] || JOBMAN_SCRATCH+=-$NODE
}

enter() {
    if ! make_scratch; then
        fails launch-failed "there is no room for scratch files at $JOBMAN_SCRATCH"
        return
    fi
    if ! cd "${cwd:-.}" 2>/dev/null; then
        fails launch-failed "the working directory $cwd is not there on $NODE"
        return
    fi
    if [[ ${given:-} && ! -r $given.behind ]]; then
        fails launch-failed "its secrets and variables from elsewhere are not in $J: submit it with jobman"
        return
    fi
    [[ ! ${free_ports+set} ]] || find_ports
    # A hook before it may still make the program.
    [[ ! ${command+set} || ${before+set} || ${#wrap[@]} != 0 ]] || is_there "${command[0]}" ||
        fails launch-failed "there is no program ${command[0]} on $NODE" 127
}

# Copies of the same task on this node share it, and one that ends may take it away from one that begins.
make_scratch() {
    local tries=0
    if [[ $DIRECT ]]; then
        [[ -d $JOBMAN_SCRATCH ]] || mkdir -p "$JOBMAN_SCRATCH" 2>/dev/null
        return
    fi
    until mkdir -p "$JOBMAN_SCRATCH/.copies" 2>/dev/null && { : >"$JOBMAN_SCRATCH/.copies/$RANK"; } 2>/dev/null; do
        ((++tries < 20)) || return
    done
}

leave() {
    cd /
    if [[ $DIRECT ]]; then
        # The last thing that a script does needs no process of its own.
        if [[ $LAST && ! $REASON && ! $STOP && $restart != always ]]; then LITTER=$JOBMAN_SCRATCH; else rm -rf "$JOBMAN_SCRATCH"; fi
        return
    fi
    rm -f "$JOBMAN_SCRATCH/.copies/$RANK"
    ! rmdir "$JOBMAN_SCRATCH/.copies" 2>/dev/null || rm -rf "$JOBMAN_SCRATCH" 2>/dev/null
}

work() {
    if [[ ${before+set} ]] && ! hook "${before[@]}"; then
        [[ $REASON ]] || verdict "the hook before it failed: "
    elif [[ ! ${command+set} || $STOPPED ]] && ! is_underway; then
        CODE=0
        [[ ! $STOPPED ]] || verdict
    elif ((${#wrap[@]} == 0)) && ! is_underway && ! is_there "${command[0]}"; then
        fails launch-failed "there is no program ${command[0]} on $NODE" 127
    else
        begin "${wrap[@]}" "${command[@]}"
        await
        verdict
    fi
    if [[ ${after+set} ]]; then
        local done=("$CODE" "$REASON" "$SIGNAL" "$SAYS" "$STOPPED")
        # What comes after is not stopped for what came before.
        stop_timers
        ASKED='' CHILD='' STOPPED=''
        hook "${after[@]}" || echo "jobman: the hook after it ended with exit code $STATUS" >&2
        CODE=${done[0]} REASON=${done[1]} SIGNAL=${done[2]} SAYS=${done[3]} STOPPED=${done[4]}
    fi
}
