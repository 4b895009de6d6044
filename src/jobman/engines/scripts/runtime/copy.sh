# -- one copy, on its node -----------------------------------------------------------------------------------

copy() {
    place
    HERE=$J/out/$KEY/$ATTEMPT/$RANK
    CODE='' REASON='' SIGNAL='' SAYS='' WHY='' STOPPED='' ASKED='' CHILD='' PORTS='' TIMERS=()
    trap on_stop URG
    trap on_end TERM
    trap on_warn USR1
    trap on_why USR2
    trap 'freeze STOP' WINCH
    trap 'freeze CONT' CONT
    outputs
    surround
    if enter; then
        now
        # What the machine itself is called: managers may have other names for it.
        [[ ! ${listens:-} ]] || HOST=$(uname -n)$PORTS
        write_down began "$at" "${STEP:-}" "$NODES" "$STARTS" "$NODE" "${HOST:-}"
        [[ ! $DIRECT ]] || started
        timers
        work
        stop_timers
    fi
    [[ ! ${result_file:-} || $result_file -ot $HERE.began ]] || tail -c 4096 -- "$result_file" >"$HERE.result" 2>/dev/null || rm -f "$HERE.result"
    now
    sizes
    write_down end "$at" "$REASON" "$CODE" "$SIGNAL" "${STOPPED:+1}" "$NODE" "$ENDS" "${SAYS//[$'\t\n']/ }"
    leave
    return "${CODE:-1}"
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

# How much of files that the document names is of this attempt.
sizes() {
    local stream
    ENDS=
    [[ $STARTS ]] || return 0
    for stream in out err; do
        [[ ! -e $HERE.$stream ]] || ENDS+="$stream:$(stat -Lc %s -- "$HERE.$stream" 2>/dev/null || echo 0) "
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
    scratch_of
}

scratch_of() {
    JOBMAN_SCRATCH=${scratch:-${TMPDIR:-/tmp}}/jobman-$JOBMAN_JOB_ID-${KEY//\//+}-$ATTEMPT
    # Nodes may share the folder.
    [[ $DIRECT ]] || JOBMAN_SCRATCH+=-$NODE
}

# A port for each name that has none, at which nobody answers yet.
find_ports() {
    local name number
    for name in "${free_ports[@]}"; do
        number=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        while (exec {IDLE}<>"/dev/tcp/127.0.0.1/$number") 2>/dev/null; do number=$((number + 1)); done
        printf -v "PORT_$name" %s "$number"
        environment+=("PORT_$name=$number")
        PORTS+=" $name=$number"
    done
}

# Where others of the job are that can be reached by now.
peer() { # TASK VARIABLE REPLICAS PORT=NUMBER...
    local task=$1 name=$2 many=$3 file each host found index
    shift 3
    for file in "$J/hosts/${KEY%"${KEY##*/}"}$task".* "$J/hosts/$task".*; do
        [[ -e $file ]] || continue
        index=${file##*.}
        read -r host found <"$file"
        [[ $index != 0 ]] || export "JOBMAN_HOST_$name=$host"
        ((many == 1)) || export "JOBMAN_HOST_${name}_$index=$host"
        for each in "$@" $found; do
            [[ $index != 0 ]] || export "JOBMAN_PORT_${name}_$each"
            ((many == 1)) || export "JOBMAN_PORT_${name}_${each%=*}_$index=${each#*=}"
        done
    done
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
    # The last thing that a copy in the script itself does needs no process of its own.
    [[ ! $DIRECT ]] || exec rm -rf "$JOBMAN_SCRATCH"
    rm -f "$JOBMAN_SCRATCH/.copies/$RANK"
    ! rmdir "$JOBMAN_SCRATCH/.copies" 2>/dev/null || rm -rf "$JOBMAN_SCRATCH" 2>/dev/null
}

work() {
    if [[ ${before+set} ]] && ! hook "${before[@]}"; then
        [[ $REASON ]] || verdict "the hook before it failed: "
    elif [[ ! ${command+set} || $STOPPED ]]; then
        CODE=0
        [[ ! $STOPPED ]] || verdict
    elif ((${#wrap[@]} == 0)) && ! is_there "${command[0]}"; then
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

# A command in place of this shell, with its own environment: any name in it may also be one of this script's.
become() { # COMMAND...
    local JOBMAN_BEFORE=() JOBMAN_BEHIND=()
    if [[ ${given:-} ]]; then
        while IFS= read -r -d '' JOBMAN_NEXT; do JOBMAN_BEFORE+=("$JOBMAN_NEXT"); done <"$given.before"
        while IFS= read -r -d '' JOBMAN_NEXT; do JOBMAN_BEHIND+=("$JOBMAN_NEXT"); done <"$given.behind"
    fi
    for JOBMAN_NEXT in "${JOBMAN_INHERITED[@]}" "${JOBMAN_BEFORE[@]}" "${environment[@]}" "${JOBMAN_BEHIND[@]}"; do
        # What jobman tells a copy, nobody else does.
        JOBMAN_NAME=${JOBMAN_NEXT%%=*}
        [[ $JOBMAN_NAME == JOBMAN_* && ${!JOBMAN_NAME+set} ]] || { unset -v "$JOBMAN_NAME" && export "$JOBMAN_NEXT"; }
    done 2>/dev/null
    exec -- "$@"
}

# Whether there is such a program, on the PATH that it would have.
is_there() { # COMMAND
    local each path=$PATH
    for each in "${environment[@]}"; do [[ $each != PATH=* ]] || path=${each#PATH=}; done
    PATH=$path type -P -- "$1" >/dev/null
}

# A process group of its own, so that all of it can be ended.
begin() {
    set -m
    become "$@" &
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

freeze() { # SIGNAL
    local each
    INTERRUPTED=1
    [[ ! $STOPPED || $1 == CONT ]] || return 0
    for each in $CHILD "${TIMERS[@]}"; do kill -s "$1" -- "-$each" 2>/dev/null; done
}

# The manager itself ends it; one that leaves little time for that has another word here.
on_end() { on_stop; }

# Asked in peace, and killed when its grace is over.
stop_child() {
    local target=$CHILD
    ASKED=1
    timer "$grace" kill_child "$target"
    if [[ ${at_stop+set} ]]; then (become "${at_stop[@]}"); fi
    kill -TERM -- "-$target" 2>/dev/null
    # One that stands still would not hear of it.
    kill -CONT -- "-$target" 2>/dev/null
}

kill_child() { kill -KILL -- "-$1" 2>/dev/null; }

# -- time ----------------------------------------------------------------------------------------------------

timers() {
    ME=$BASHPID
    [[ ! ${duration:-} ]] || timer "$duration" time_is_up
    [[ ! ${warning:-} ]] || timer "$warn_after" warn
    ! declare -F start_checks >/dev/null || start_checks
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
    while more=$(more_time); ((more > given)); do
        tick "$((more - given))"
        given=$more
    done
    echo timeout >"$HERE.why"
    kill -USR2 "$ME"
}

# Seconds that somebody gave it since.
more_time() { cat "$J/more/$name" "$J/more/.all" 2>/dev/null | awk '{s += $1} END {print int(s)}'; }

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
