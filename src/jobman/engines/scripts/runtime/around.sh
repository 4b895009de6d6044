# -- what may be around a command: hooks, ports, limits of time ----------------------------------------------

hook() {
    begin "$@"
    await
    ((STATUS == 0))
}

# How much of files that the document names is of this attempt.
sizes() {
    local stream
    for stream in out err; do
        [[ ! -e $HERE.$stream ]] || ENDS+="$stream:$(stat -Lc %s -- "$HERE.$stream" 2>/dev/null || echo 0) "
    done
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

# A copy elsewhere hears for itself what is meant for it.
listen() {
    trap on_stop URG
    trap on_end TERM
    trap freeze WINCH
    # What Slurm or Flux send to all of a step, the command hears for itself.
    trap 'INTERRUPTED=1' USR1 USR2
}

# The manager itself ends it; one that leaves little time for that has another word here.
on_end() { on_stop; }

timers() {
    ME=$BASHPID
    trap on_word USR2
    [[ ! ${duration:-} ]] || timer "$duration" time_is_up
    [[ ! ${warning:-} ]] || timer "$warn_after" warn
    ! declare -F start_checks >/dev/null || start_checks
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

warn() { echo "$warning" >"$HERE.warn"; kill -USR2 "$ME"; }

# A timer has left word of a warning, or of why this ends.
on_word() {
    INTERRUPTED=1
    if [[ -e $HERE.warn && ! $WARNED ]]; then
        WARNED=1
        [[ ! $CHILD ]] || kill -s "$warning" -- "-$CHILD" 2>/dev/null
    fi
    [[ -e $HERE.why && ! $WHY ]] || return 0
    WHY=$(<"$HERE.why")
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
