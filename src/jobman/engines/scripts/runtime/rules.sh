# -- what follows of a failure -------------------------------------------------------------------------------

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
    # Those it served may be over, and the signal that says so still on its way.
    ! is_served || STOP=${STOP:-served}
}

# Its own failures before its node was lost count as well.
count_retries() {
    local line kind key reason
    while IFS= read -r line; do
        IFS=$'\x1f' read -r _ kind key _ _ reason _ <<<"${line//$'\t'/$'\x1f'}"
        [[ $kind != retrying || $key != "$KEY" || ! $reason || $reason == node-lost || $reason == preempted ]] || ((++retried))
    done <"$LOG"
}
