# -- one replica: attempts, until it is over -----------------------------------------------------------------

# Leaves how it came out in STATE (succeeded, failed, cancelled, and restart or job where a rule says so).
replica() { # UNIT KEY INDEX
    U=$1 KEY=$2 INDEX=$3
    local retried=0 restarts=0 pause_for
    STATE='' STOP=${STOP:-} STOPPING='' BECAUSE=''
    trap stop_attempt URG
    trap stop_of_manager TERM
    trap 'stop_attempt served' USR1
    trap 'freeze_attempt WINCH frozen' WINCH
    trap 'freeze_attempt CONT thawed' CONT
    "unit_$U"
    while :; do
        next_attempt
        [[ $kind == group ]] && attempt_group || attempt_task
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
        decide
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
    # Mostly it is the first, and one process makes all that it needs.
    if [[ ! -e $folder ]]; then
        scratch_of
        if [[ $kind == task && $DIRECT ]]; then also=("$JOBMAN_SCRATCH"); fi
        mkdir "$folder" "$folder/1" "${also[@]}" 2>/dev/null
        [[ -d $folder/1 ]] || mkdir -p "$folder/1"
    else
        until mkdir "$folder/$ATTEMPT" 2>/dev/null; do ((ATTEMPT++)); done
    fi
    CODE='' REASON='' SIGNAL='' SAYS='' NODES=${NODES:-}
    ((ATTEMPT == 1)) || [[ ! $IS_FIRST ]] || said_last retrying ||
        tell retrying "$KEY" "$((ATTEMPT - 1))" '' node-lost '' "; it is tried again"
    ((ATTEMPT == 1)) || [[ ! $IS_FIRST ]] || count_retries
    IS_FIRST=
}

# Its own failures before its node was lost count as well.
count_retries() {
    local line kind key reason
    while IFS= read -r line; do
        IFS=$'\x1f' read -r _ kind key _ _ reason _ <<<"${line//$'\t'/$'\x1f'}"
        [[ $kind != retrying || $key != "$KEY" || ! $reason || $reason == node-lost || $reason == preempted ]] || ((++retried))
    done <"$LOG"
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

# The first rule that matches, from the inside out; then retries, then the policy of restarts.
decide() {
    local rule act codes reasons indexes
    pause_for=0
    for rule in "${rules[@]}"; do
        IFS='|' read -r act codes reasons indexes <<<"$rule"
        [[ ! $codes ]] || { [[ $CODE ]] && among "$CODE" "$codes"; } || continue
        [[ ! $reasons || ,$reasons, == *",$REASON,"* ]] || continue
        [[ ! $indexes ]] || among "$INDEX" "$indexes" || continue
        ACTION=$act
        [[ $act == retry ]] || return
        try_again "${retries:-3}" || ACTION=fail
        return
    done
    ACTION=retry
    [[ $REASON != node-lost && $REASON != preempted ]] || return
    if [[ ${retries:-} ]] && is_meant && try_again "$retries"; then return; fi
    ACTION=fail
    [[ $restart == never ]] || ACTION=in-place
}

is_meant() {
    [[ ! ${retry_codes:-}${retry_reasons:-} ]] && return
    { [[ ${retry_codes:-} && $CODE ]] && among "$CODE" "$retry_codes"; } || [[ ,${retry_reasons:-}, == *",$REASON,"* ]]
}

try_again() { # LIMIT
    ((retried < $1)) || return
    pause_for=$(awk -v d="${delay:-0}" -v f="${factor:-1}" -v n="$retried" 'BEGIN {printf "%.3f", d * f ^ n}')
    ((++retried))
}

rest() {
    local words="it is tried again"
    [[ $1 == 0 || $1 == 0.* ]] || words="it is tried again in ${1%.*} s"
    tell retrying "$KEY" "$ATTEMPT" "$CODE" "$REASON" "$NODES" "${SIGNAL:+@$SIGNAL }$SAYS; $words"
    rest_for "$1"
}

# At intervals that double, up to five minutes.
in_place() {
    local pause_for=$((restarts < 9 ? 1 << restarts : 300))
    ((++restarts))
    rest "$((pause_for < 300 ? pause_for : 300))"
}

rest_for() {
    local whole=${1%.*}
    [[ $1 != *.* ]] || nap "0.${1#*.}"
    while ((whole-- > 0)) && [[ ! $STOP ]]; do nap 1; done
    while [[ -e $J/held && ! $STOP ]]; do nap 1; done
}

# -- one attempt of a task -----------------------------------------------------------------------------------

attempt_task() {
    local folder=$J/out/$KEY/$ATTEMPT pid
    PID='' SEEN='' WAS_READY='' PASSED='' FROZEN=''
    if { declare -F "steps_$U" >/dev/null && ! bring_files; } || [[ $STOP ]]; then
        scratch_of
        [[ ! $DIRECT ]] || rmdir "$JOBMAN_SCRATCH" 2>/dev/null
        return
    fi
    if [[ $DIRECT ]]; then
        (copy) &
    else
        "${step[@]}" bash -c "$(program copy)" "jobman: $KEY" >"$folder/launch" 2>&1 </dev/null &
    fi
    PID=$!
    [[ ! $STOP ]] || stop_attempt
    [[ $DIRECT ]] || watch_copies
    wait_for "$PID"
    PID=
    [[ $DIRECT ]] || seen
    judge
}

# A copy elsewhere knows nothing of this script: it is given what it needs.
program() { # COMMAND...
    declare -f
    used_since
    declare -p U J KEY ATTEMPT INDEX LOG DIRECT NODES NODELIST NNODES PIECE JOBMAN_JOB_ID JOBMAN_JOB_NAME \
        "${OF_A_UNIT[@]}" 2>/dev/null
    printf '%q ' "$@"
}

# Of what was exported, that which this script uses for itself; the rest is exported still.
used_since() {
    local JOBMAN_NEXT JOBMAN_NAME JOBMAN_FOUND=()
    for JOBMAN_NEXT in "${JOBMAN_INHERITED[@]}"; do
        JOBMAN_NAME=${JOBMAN_NEXT%%=*}
        [[ ${!JOBMAN_NAME-} == "${JOBMAN_NEXT#*=}" ]] || JOBMAN_FOUND+=("$JOBMAN_NEXT")
    done
    local JOBMAN_INHERITED=("${JOBMAN_FOUND[@]}")
    declare -p JOBMAN_INHERITED
}

wait_for() { # PID: its exit code is in STATUS
    local last=
    while :; do
        INTERRUPTED=
        wait "$1" 2>/dev/null
        STATUS=$?
        [[ $INTERRUPTED ]] || break
        last=$STATUS
    done
    [[ $STATUS != 127 || ! $last ]] || STATUS=$last
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
    if [[ $kind == group || $DIRECT ]]; then kill -URG "$PID" 2>/dev/null; else stop_step; fi
}

# It stands still where it is, with the time that is left to it, or goes on.
freeze_attempt() { # SIGNAL WORD
    INTERRUPTED=1
    # What is to end must hear of it.
    [[ $PID && ! ($STOP && $2 == frozen) ]] || return 0
    [[ $2 == thawed && ! $FROZEN ]] || tell "$2" "$KEY" "$ATTEMPT" '' '' '' ''
    [[ $2 == frozen ]] && FROZEN=1 || FROZEN=
    if [[ $kind == group || $DIRECT ]]; then kill -s "$1" "$PID" 2>/dev/null; else signal_step "$1"; fi
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

# What copies elsewhere have done so far.
watch_copies() {
    local every=0.05
    while kill -0 "$PID" 2>/dev/null; do
        seen
        [[ ! $SEEN || (${ready+set} && ! $WAS_READY) || (${begun+set} && ! $PASSED) ]] || return
        nap "$every"
        [[ $every == 0.5 ]] || { [[ $every == 0.05 ]] && every=0.1 || every=0.5; }
    done
}

seen() {
    local line number
    if [[ ! $SEEN && -e $folder/0.began ]]; then
        # Tabs in a row would be taken for one.
        IFS= read -r line <"$folder/0.began"
        IFS=$'\x1f' read -r _ STEP NODES _ _ HOST <<<"${line//$'\t'/$'\x1f'}"
        started
    fi
    if [[ ${begun+set} && ! $PASSED ]]; then
        for ((number = 0; number < copies; number++)); do [[ -e $folder/$number.passed ]] || return; done
        PASSED=1
        report started
    fi
    [[ ${ready+set} && ! $WAS_READY ]] || return
    for ((number = 0; number < copies; number++)); do [[ -e $folder/$number.ready ]] || return; done
    became_ready
}

became_ready() {
    WAS_READY=1
    tell ready "$KEY" "$ATTEMPT" '' '' '' ''
    report ready
}

# Copies are one program: the first that failed by itself says how it ended.
judge() {
    local number line rank
    if [[ ! $DIRECT ]]; then
        for line in "$folder"/*.why; do
            [[ ! -e $line ]] || { stopping_for "$(<"$line")" && break; }
        done
    fi
    if ((copies == 1)) && [[ -e $folder/0.end ]]; then
        IFS= read -r line <"$folder/0.end"
        IFS=$'\x1f' read -r _ REASON CODE SIGNAL _ _ _ SAYS <<<"${line//$'\t'/$'\x1f'}"
        return
    fi
    line=$(cat "$folder"/*.end 2>/dev/null | awk -F'\t' '$2 != "" {print ($5 == 1), $0}' OFS='\t' | sort -s -n -k1,1 -k2,2 | head -n 1)
    number=$(find "$folder" -name '*.end' | wc -l)
    if [[ $line ]]; then
        IFS=$'\x1f' read -r _ _ REASON CODE SIGNAL _ rank _ SAYS < <(tr '\t' '\037' <<<"$line")
        if ((copies > 1)); then
            [[ $SAYS ]] || { [[ $SIGNAL ]] && SAYS="ended by signal $SIGNAL" || SAYS="ended with exit code $CODE"; }
            SAYS="a copy on $rank: $SAYS"
        fi
    elif ((number == copies)); then
        CODE=0 REASON=
    else
        lost
    fi
}

# Copies that left no word: their node is gone, or they never were.
lost() {
    CODE=$STATUS SAYS=$(grep -v '^$' "$folder/launch" 2>/dev/null | tail -n 1)
    if [[ ! $SEEN ]]; then REASON=launch-failed; else REASON=node-lost; fi
    if [[ $SAYS == *oom* || $SAYS == *"Out Of Memory"* ]]; then REASON=out-of-memory; fi
    [[ $REASON != node-lost ]] || CODE=
}
