# -- one command, and all that comes of it -------------------------------------------------------------------

# A command in place of this shell, with its own environment: any name in it may also be one of this script's.
become() { # COMMAND...
    local JOBMAN_FOUND=() JOBMAN_BEFORE=() JOBMAN_BEHIND=()
    used_since
    if [[ ${given:-} ]]; then
        while IFS= read -r -d '' JOBMAN_NEXT; do JOBMAN_BEFORE+=("$JOBMAN_NEXT"); done <"$given.before"
        while IFS= read -r -d '' JOBMAN_NEXT; do JOBMAN_BEHIND+=("$JOBMAN_NEXT"); done <"$given.behind"
    fi
    for JOBMAN_NEXT in "${JOBMAN_FOUND[@]}" "${JOBMAN_BEFORE[@]}" "${environment[@]}" "${JOBMAN_BEHIND[@]}"; do
        # What jobman tells a copy, nobody else does.
        JOBMAN_NAME=${JOBMAN_NEXT%%=*}
        [[ $JOBMAN_NAME == JOBMAN_* && ${!JOBMAN_NAME+set} ]] || { unset -v "$JOBMAN_NAME" && export "$JOBMAN_NEXT"; }
    done 2>/dev/null
    exec -- "$@"
}

# Of what the script found exported, that which it may have used for itself; the rest is exported still. Bash sees
# to its functions, and to where it is.
used_since() {
    for JOBMAN_NEXT in "${JOBMAN_INHERITED[@]}"; do
        JOBMAN_NAME=${JOBMAN_NEXT%%=*}
        [[ $JOBMAN_NAME == @(*[!a-zA-Z0-9_]*|PWD|OLDPWD|SHLVL|_) ]] ||
            [[ $JOBMAN_NAME != [a-z]* && ${!JOBMAN_NAME-"?$JOBMAN_NEXT"} == "${JOBMAN_NEXT#*=}" ]] ||
            JOBMAN_FOUND+=("$JOBMAN_NEXT")
    done
}

# Whether there is such a program, on the PATH that it would have.
is_there() { # COMMAND
    local each path=$PATH
    for each in "${environment[@]}"; do [[ $each != PATH=* ]] || path=${each#PATH=}; done
    PATH=$path type -P -- "$1" >/dev/null
}

# A process group of its own, so that all of it can be ended.
begin() {
    if is_underway; then
        take_over
        return
    fi
    set -m
    become "$@" &
    CHILD=$!
    set +m
    [[ ! $STOPPED || $ASKED ]] || stop_child
}

# Whether the head of the script has started the command already.
is_underway() { [[ ${jobman_child:-} ]]; }

# From now on this shell has it in hand, and acts on the signals that came before.
take_over() {
    local each
    CHILD=$jobman_child jobman_child=
    [[ ! $STOPPED || $ASKED ]] || stop_child
    for each in $jobman_heard; do
        case $each in
        URG) stop_attempt ;;
        TERM) stop_of_manager ;;
        USR1) stop_attempt served ;;
        WINCH) freeze_attempt ;;
        esac
    done
}

await() {
    # One that ended by itself has been waited for.
    if [[ ${jobman_status:-} && ! $jobman_heard ]]; then STATUS=$jobman_status; else wait_for "$CHILD"; fi
    kill -KILL -- "-$CHILD" 2>/dev/null
    CHILD=
}

# Signals cut a wait short. Bash may not know how something ended that did so while it heard of one.
wait_for() { # PID: its exit code is in STATUS
    local last=${jobman_status:-}
    while :; do
        INTERRUPTED=
        wait "$1" 2>/dev/null
        STATUS=$?
        [[ $INTERRUPTED ]] || break
        last=$STATUS
    done
    [[ $STATUS != 127 || ! $last ]] || STATUS=$last
    ((STATUS >= 0)) || STATUS=143
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
    # What runs an image could not begin, and said so.
    [[ ! -s $JOBMAN_SCRATCH/.launch.$RANK ]] || { REASON=launch-failed SAYS=$(<"$JOBMAN_SCRATCH/.launch.$RANK"); }
}

on_stop() {
    INTERRUPTED=1 STOPPED=1
    [[ ! $CHILD || $ASKED ]] || stop_child
}

# It stands still or goes on, as a file says. Bash may lose one of two signals that come at once, and managers send
# CONT before TERM: nobody here listens for CONT.
freeze() {
    local each how=CONT
    INTERRUPTED=1
    ! is_frozen || how=STOP
    [[ ! $STOPPED || $how == CONT ]] || return 0
    for each in $CHILD "${TIMERS[@]}"; do kill -s "$how" -- "-$each" 2>/dev/null; done
}
is_frozen() { [[ -e $J/frozen/$PIECE ]]; }

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

# It counts ticks and asks no clock: whoever is frozen keeps the time that is left. It is not a child of this shell:
# bash (5.2) that starts one in the moment in which another ends may wait for that for ever.
timer() { # SECONDS COMMAND...
    TIMERS+=($(
        set -m
        {
            trap - URG TERM USR1 USR2 WINCH
            tick "$1"
            "${@:2}"
        } >/dev/null &
        echo "$!"
    ))
}

tick() {
    local whole=${1%.*} rest=0.${1#*.}
    [[ $1 == *.* ]] || rest=0.001
    [[ $rest == 0.0* ]] || pause "$rest"
    while ((whole-- > 0)); do pause 1; done
}

stop_timers() {
    local each
    ((${#TIMERS[@]})) || return 0
    for each in "${TIMERS[@]}"; do kill -KILL -- "-$each" 2>/dev/null; done
    TIMERS=()
}
