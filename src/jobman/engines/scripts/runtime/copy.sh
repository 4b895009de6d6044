# -- one copy, on its node -----------------------------------------------------------------------------------

copy() {
    place
    HERE=$J/out/$KEY/$ATTEMPT/$RANK
    CODE='' REASON='' SIGNAL='' SAYS='' WHY='' STOPPED='' ASKED='' CHILD='' TIMERS=()
    trap on_stop URG TERM
    trap on_warn USR1
    trap on_why USR2
    outputs
    surround
    if enter; then
        now
        printf '%s\t%s\t%s\t%s\t%s\n' "$at" "${STEP:-}" "$NODES" "$STARTS" "$NODE" >"$HERE.began.new"
        mv -f "$HERE.began.new" "$HERE.began"
        [[ ! $DIRECT ]] || started
        timers
        work
        stop_timers
    fi
    [[ ! ${result_file:-} ]] || tail -c 4096 -- "$result_file" >"$HERE.result" 2>/dev/null || rm -f "$HERE.result"
    leave
    now
    SAYS=${SAYS//[$'\t\n']/ }
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$at" "$REASON" "$CODE" "$SIGNAL" "${STOPPED:+1}" "$NODE" "$SAYS" >"$HERE.end.new"
    mv -f "$HERE.end.new" "$HERE.end"
    return "${CODE:-1}"
}

# Output goes beside what is known of the attempt, or to the files that the document names.
outputs() {
    local stream name file
    STARTS=
    exec </dev/null
    for stream in out err; do
        name=std$stream file=$HERE.$stream
        [[ $stream == out ]] || name=stderr
        if [[ $stream == err && ${stderr:-} && ${stderr:-} == "${stdout:-}" ]]; then
            exec 2>&1
            continue
        fi
        if [[ ${!name:-} ]]; then
            file=${!name}
            [[ $file == /* ]] || file=${cwd:-$PWD}/$file
            ln -sfn "$file" "$HERE.$stream"
            STARTS+="$stream:$(stat -Lc %s -- "$file" 2>/dev/null || echo 0) "
        fi
        if [[ $stream == out ]]; then exec >>"$file"; else exec 2>>"$file"; fi
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
    JOBMAN_SCRATCH=${scratch:-${TMPDIR:-/tmp}}/jobman-$JOBMAN_JOB_ID-${KEY//\//+}-$ATTEMPT
}

enter() {
    # Copies of the same task on this node that end may take the folder away again.
    local tries=0
    until mkdir -p "$JOBMAN_SCRATCH/.copies" 2>/dev/null && { : >"$JOBMAN_SCRATCH/.copies/$RANK"; } 2>/dev/null; do
        ((++tries < 20)) || fails launch-failed "there is no room for scratch files at $JOBMAN_SCRATCH" || return
    done
    if ! cd "${cwd:-.}" 2>/dev/null; then
        fails launch-failed "the working directory $cwd is not there on $NODE"
        return
    fi
    [[ ! $(declare -F more_of_entering) ]] || more_of_entering
}

leave() {
    cd /
    rm -f "$JOBMAN_SCRATCH/.copies/$RANK"
    ! rmdir "$JOBMAN_SCRATCH/.copies" 2>/dev/null || rm -rf "$JOBMAN_SCRATCH"
}

work() {
    if [[ ${before+set} ]] && ! hook "${before[@]}"; then
        [[ $REASON ]] || verdict "the hook before it failed: "
    elif [[ ! ${command+set} || $STOPPED ]]; then
        CODE=0
        [[ ! $STOPPED ]] || verdict
    elif ! type -P -- "${command[0]}" >/dev/null; then
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

# A process group of its own, so that all of it can be ended.
begin() {
    set -m
    "$@" {IDLE}<&- &
    CHILD=$!
    set +m
    [[ ! $STOPPED || $ASKED ]] || stop_child
}

await() {
    local last=
    while :; do
        INTERRUPTED=
        wait "$CHILD" 2>/dev/null
        STATUS=$?
        [[ $INTERRUPTED ]] || break
        last=$STATUS
    done
    [[ $STATUS != 127 || ! $last ]] || STATUS=$last
    kill -KILL -- "-$CHILD" 2>/dev/null
    CHILD=
}

hook() {
    begin "$@"
    await
    ((STATUS == 0))
}

# How it ended, from its exit code and from why it was stopped, if it was.
verdict() {
    CODE=$STATUS SAYS=
    ((CODE <= 128 || CODE > 192)) || SIGNAL=$((CODE - 128))
    if [[ $WHY == timeout ]]; then
        REASON=timeout
        ((CODE != 0)) || CODE=124
    elif [[ $WHY == unhealthy:* ]]; then
        REASON=unhealthy SAYS=${WHY#*:}
        ((CODE != 0)) || CODE=1
    elif ((CODE == 0)); then
        REASON=
    elif [[ $SIGNAL ]]; then
        REASON=signal
    else
        REASON=exit
    fi
    [[ ! ${1:-} ]] || SAYS="$1exit code $CODE"
}

on_stop() {
    INTERRUPTED=1 STOPPED=1
    [[ ! $CHILD || $ASKED ]] || stop_child
}

# Asked in peace, and killed when its grace is over.
stop_child() {
    local target=$CHILD
    ASKED=1
    timer "$grace" kill_child "$target"
    if [[ ${at_stop+set} ]]; then "${at_stop[@]}"; fi
    kill -TERM -- "-$target" 2>/dev/null
}

kill_child() { kill -KILL -- "-$1" 2>/dev/null; }

# -- time ----------------------------------------------------------------------------------------------------

timers() {
    ME=$BASHPID
    [[ ! ${duration:-} ]] || timer "$duration" time_is_up
    [[ ! ${warning:-} ]] || timer "$warn_after" warn
    [[ ! $(declare -F start_checks) ]] || start_checks
}

# It counts ticks and asks no clock: whoever is frozen keeps the time that is left.
timer() { # SECONDS COMMAND...
    local left=$1
    shift
    set -m
    {
        trap - URG TERM USR1 USR2
        tick "$left"
        "$@"
    } &
    TIMERS+=($!)
    set +m
}

tick() {
    local whole=${1%.*} rest=0.${1#*.}
    [[ $1 == *.* ]] || rest=0.001
    [[ $rest == 0.0* ]] || pause "$rest"
    while ((whole-- > 0)); do pause 1; done
}

time_is_up() {
    local given=0 more
    while more=$(cat "$J/more/$name" "$J/more/.all" 2>/dev/null | awk '{s += $1} END {print int(s)}'); ((more > given)); do
        tick "$((more - given))"
        given=$more
    done
    echo timeout >"$HERE.why"
    kill -USR2 "$ME"
}

warn() { echo "$warning" >"$HERE.warn"; kill -USR1 "$ME"; }
on_warn() { INTERRUPTED=1; [[ ! $CHILD ]] || kill -s "$warning" -- "-$CHILD" 2>/dev/null; }
on_why() {
    INTERRUPTED=1 WHY=$(<"$HERE.why")
    [[ ! $DIRECT ]] || stopping_for "$WHY"
    on_stop
}

# Said by whoever keeps the log: a copy in its own script at once, of others when they have ended.
stopping_for() {
    if [[ $1 == unhealthy:* ]]; then
        tell unhealthy "$KEY" "$ATTEMPT" '' '' '' "${1#*:}"
        tell stopping "$KEY" "$ATTEMPT" '' '' '' "its check failed"
    else
        tell stopping "$KEY" "$ATTEMPT" '' '' '' "its time is up"
    fi
}

stop_timers() {
    local each
    for each in "${TIMERS[@]}"; do kill -KILL -- "-$each" 2>/dev/null; done
    wait "${TIMERS[@]}" 2>/dev/null
    TIMERS=()
}
