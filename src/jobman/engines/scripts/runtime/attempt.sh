# -- one replica: attempts, until it is over -----------------------------------------------------------------

# Leaves how it came out in STATE (succeeded, failed, cancelled, and restart or job where a rule says so).
replica() { # UNIT KEY INDEX
    U=$1 KEY=$2 INDEX=$3
    local retried=0 restarts=0 pause_for
    STATE='' STOP=${STOP:-} STOPPING='' BECAUSE='' PID='' FROZEN=''
    trap stop_attempt URG
    trap stop_of_manager TERM
    trap 'stop_attempt served' USR1
    trap 'INTERRUPTED=1' USR2
    trap freeze_attempt WINCH
    "unit_$U"
    while :; do
        next_attempt
        [[ $kind == group ]] && attempt_group || attempt_task
        # Whoever ends all of a job may reach the command a moment before this shell.
        [[ $STOP || $REASON != signal || $SIGNAL != 15 ]] || nap 0.5
        if [[ $STOP ]]; then
            stopped
            return
        fi
        if [[ ! $REASON ]]; then
            if [[ $restart == always ]]; then
                in_place
                continue
            fi
            ended succeeded
            return
        fi
        if [[ $REASON == skipped || $REASON == cancelled ]]; then
            ended "$REASON"
            return
        fi
        # Without rules, a failure is the end.
        ACTION=fail
        ! declare -F decide >/dev/null || decide
        case $ACTION in
        retry) rest "$pause_for" ;;
        ignore) ended succeeded "; a rule ignores it" && return ;;
        fail) ended failed && return ;;
        fail-task) ended failed && STATE=task && return ;;
        fail-job) ended failed && STATE=job && return ;;
        restart-group) ended failed && STATE=restart && return ;;
        in-place) in_place ;;
        esac
        if [[ $STOP ]]; then
            stopped
            return
        fi
    done
}

# A service that ends with those it served has done its work; what goes back to the queue comes again.
stopped() {
    if is_served; then
        ended succeeded
    elif is_requeued; then
        STATE=requeued
        tell retrying "$KEY" "$ATTEMPT" '' '' "$NODES" "the job is held; it is tried again"
    elif [[ $BECAUSE == requeued ]]; then
        STATE=requeued
        tell retrying "$KEY" "$ATTEMPT" '' preempted "$NODES" "it goes back to the queue; it is tried again"
    elif [[ $BECAUSE == timeout ]]; then
        REASON=timeout CODE=${CODE:-124} SIGNAL='' SAYS="its allocation has no time left"
        ended failed
    else
        ended cancelled
    fi
}

is_requeued() { [[ ! ${BOX_ABOVE:-} && -e $J/requeued/$PIECE && ! -e $J/cancelled ]]; }
is_served() { [[ ${IS_SERVICE[$U]:-} && ($STOP == served || (! ${BOX_ABOVE:-} && -e $J/served)) ]]; }

# A number that no attempt had before, also where a node was lost and all of it begins again.
next_attempt() {
    local folder=$J/out/$KEY also=()
    ATTEMPT=1
    if is_underway; then
        CODE='' REASON='' SIGNAL='' SAYS='' IS_FIRST=
        return
    fi
    # A first attempt that was done in short has left its output beside the folder.
    [[ -e $folder || ! -e $folder.out ]] || mkdir -p "$folder/1"
    # Mostly it is the first, and one process makes all that it needs.
    if [[ ! -e $folder ]]; then
        scratch_of
        if [[ $kind == task && $DIRECT ]]; then also=("$JOBMAN_SCRATCH"); fi
        LC_ALL=C mkdir "$folder" "$folder/1" "${also[@]}" 2>/dev/null
        [[ -d $folder/1 ]] || mkdir -p "$folder/1"
    else
        until mkdir "$folder/$ATTEMPT" 2>/dev/null; do ((ATTEMPT++)); done
    fi
    CODE='' REASON='' SIGNAL='' SAYS='' NODES=${NODES:-}
    ((ATTEMPT == 1)) || [[ ! $IS_FIRST ]] || said_last retrying ||
        tell retrying "$KEY" "$((ATTEMPT - 1))" '' node-lost '' "; it is tried again"
    ((ATTEMPT == 1)) || [[ ! $IS_FIRST ]] || ! declare -F count_retries >/dev/null || count_retries
    IS_FIRST=
}

# Whether this was the last word on it.
said_last() { # KIND
    local kind key last=
    while IFS=$'\t' read -r _ kind key _; do [[ $key != "$KEY" ]] || last=$kind; done <"$LOG"
    [[ $last == "$1" ]]
}

ended() { # STATE [MORE]
    STATE=$1
    local code=$CODE
    [[ $1 != cancelled ]] || code=
    tell "$1" "$KEY" "$ATTEMPT" "$code" "$REASON" "$NODES" "${SIGNAL:+@$SIGNAL }$SAYS${2:-}"
}

attempt_task() {
    local folder=$J/out/$KEY/$ATTEMPT
    PID='' SEEN='' WAS_READY='' PASSED='' FROZEN=''
    if ! is_underway && { { declare -F "steps_$U" >/dev/null && ! bring_files; } || [[ $STOP ]]; }; then
        scratch_of
        [[ ! $DIRECT ]] || rmdir "$JOBMAN_SCRATCH" 2>/dev/null
        return
    fi
    if [[ $DIRECT ]]; then
        PID=$BASHPID
        copy
        PID=
    else
        launch
    fi
}

# The manager ends what is cancelled, has no time left, or is wanted elsewhere; that it is cancelled needs no asking.
stop_of_manager() {
    [[ $STOP || ${BOX_ABOVE:-} ]] || ! declare -F why_stopped >/dev/null || why_stopped
    stop_attempt
}

stop_attempt() {
    INTERRUPTED=1 STOP=${1:-${STOP:-1}}
    [[ $PID ]] || return
    if [[ ! $STOPPING ]]; then
        SAYS="it is no longer wanted"
        ! is_served || SAYS="the tasks it served are over"
        ! is_requeued || SAYS="the job is held"
        [[ $BECAUSE != timeout ]] || SAYS="its allocation has no time left"
        [[ $BECAUSE != requeued ]] || SAYS="it goes back to the queue"
        tell stopping "$KEY" "$ATTEMPT" '' '' '' "$SAYS"
    fi
    STOPPING=1
    if [[ $kind == group ]]; then
        kill -URG "$PID" 2>/dev/null
    elif [[ $DIRECT ]]; then
        on_stop
    else
        stop_step
    fi
}

# It stands still where it is, with the time that is left to it, or goes on.
freeze_attempt() {
    local frozen='' word=thawed
    INTERRUPTED=1
    ! is_frozen || frozen=1 word=frozen
    # What is to end must hear of it.
    [[ $PID && ! ($STOP && $frozen) && $frozen != "$FROZEN" ]] || return 0
    FROZEN=$frozen
    tell "$word" "$KEY" "$ATTEMPT" '' '' '' ''
    if [[ $kind == group ]]; then
        kill -WINCH "$PID" 2>/dev/null
    elif [[ $DIRECT ]]; then
        freeze
    else
        signal_step WINCH
    fi
}

started() {
    SEEN=1
    [[ ! ${listens:-} ]] || { mkdir -p "$J/hosts/$(dirname "$KEY")" && printf '%s\n' "$HOST" >"$J/hosts/$KEY"; }
    tell started "$KEY" "$ATTEMPT" '' '' "$NODES" ''
    [[ ${begun+set} ]] || report started
}

# A replica tells its scope, or at the top whoever waits outside.
report() { # WORD
    if [[ ${BOX_ABOVE:-} ]]; then printf '%s\x1f%s\x1f%s\n' "$1" "$U" "$INDEX" >&"$BOX_ABOVE"; else outside "$1"; fi
}
