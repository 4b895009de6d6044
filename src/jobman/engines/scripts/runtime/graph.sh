# -- pieces that wait for each other, or are counted together ------------------------------------------------

# Files of replicas are `NAME.NUMBER`, and a name may have dots and numbers in it.
shopt -s extglob

is_too_late() {
    now
    ((${at%.*} > LATEST)) && ! compgen -G "$J/began/*" >/dev/null
}

# The manager has seen to the order; whether it is to run at all, those before it left word of.
may_enter() {
    local edge failures='' failed=''
    if [[ ${IS_CLEANUP[$1]:-} ]]; then
        [[ ${WHEN[$1]} == always ]] || has_failed
        return
    fi
    for edge in ${AFTER[$1]:-}; do
        # What it waits for to begin or to be ready need not be over.
        OTHER=
        [[ ${edge#*:} == started || (${edge#*:} == ready && ! -e $J/outcome/${NAMES[${edge%%:*}]}) ]] || found_of "${edge%%:*}"
        case ${edge#*:} in
        success) [[ $OTHER == succeeded ]] || return ;;
        failure) failures=1 && [[ $OTHER != failed ]] || failed=1 ;;
        started) has_begun "${edge%%:*}" || return ;;
        ready) [[ -e $J/ready/${NAMES[${edge%%:*}]} || $OTHER == succeeded ]] || return ;;
        esac
    done
    [[ ! $failures || $failed ]]
}

# The manager starts both in the same moment: who is to begin has a while to say so.
has_begun() { # UNIT
    local tries=0 name=${NAMES[$1]} found
    while mapfile -t found < <(compgen -G "$J/began/$name.+([0-9])") && ((${#found[@]} < REPLICAS[$1])); do
        [[ ! -e $J/outcome/$name && ! $STOP ]] && ((++tries < 600)) || return
        nap 0.1
    done
}

# Whoever began and left no word was killed.
found_of() {
    OTHER=
    if [[ -e $J/outcome/${NAMES[$1]} ]]; then
        read -r OTHER _ <"$J/outcome/${NAMES[$1]}"
    elif compgen -G "$J/began/${NAMES[$1]}.+([0-9])" >/dev/null; then
        OTHER=failed
        ((REPLICAS[$1] == 1)) || count_of "$1"
    else
        OTHER=skipped
    fi
}

count_of() {
    count_elements "$1"
    OTHER=$FOUND
    outcome_of_piece "$1" "$FOUND"
}

has_failed() {
    local u
    [[ ! -e $J/failed ]] || return 0
    for u in ${MEMBERS[0]}; do
        [[ ${WHEN[$u]} == success && ! ${IS_SERVICE[$u]:-} ]] || continue
        found_of "$u"
        [[ $OTHER != failed ]] || return 0
    done
    return 1
}

# Of those that wait until this is ready, the ones that nothing else holds back.
release_ready() {
    local entry piece needs gates hold each free=()
    for entry in "${READY_FOR[@]}"; do
        IFS='|' read -r piece needs gates hold <<<"$entry"
        [[ ! $hold || -e $J/released ]] && [[ ! -e $J/held ]] || continue
        for each in $needs; do [[ -e $J/ready/$each ]] || continue 2; done
        for each in $gates; do [[ -e $J/gates/$each ]] || continue 2; done
        free+=("$piece")
    done
    ((${#free[@]} == 0)) || release_pieces "${free[@]}"
}

all_there() {
    local found
    found=$(compgen -G "$1.+([0-9])" | wc -l)
    ((found >= replicas))
}

# Services end with the last of those they served.
end_services() {
    local u services=()
    for u in ${MEMBERS[0]}; do
        if [[ ${IS_SERVICE[$u]:-} ]]; then
            services+=("${NAMES[$u]}")
        else
            is_settled "$u" || return 0
        fi
    done
    ((${#services[@]})) || return 0
    : >"$J/served"
    cancel_pieces "${services[@]}" _services.end
}

# Whether it is over, or never begins because of those before it.
is_settled() {
    local edge
    [[ ! -e $J/outcome/${NAMES[$1]} ]] || return 0
    [[ ! -e $J/cancelled || ${WHEN[$1]} == always ]] || { ! compgen -G "$J/began/${NAMES[$1]}.+([0-9])" >/dev/null && return 0; }
    for edge in ${AFTER[$1]:-}; do
        [[ -e $J/outcome/${NAMES[${edge%%:*}]} ]] || { [[ ${edge#*:} == success ]] && is_settled "${edge%%:*}" && return 0; continue; }
        found_of "${edge%%:*}"
        case ${edge#*:}:$OTHER in
        success:succeeded | failure:failed | any:* | started:* | ready:*) ;;
        *) return 0 ;;
        esac
    done
    return 1
}

# Where all elements of an array have to end before anything is decided, they need not know of each other.
is_counted_later() {
    [[ ! ${GOAL[$1]:-}${MAX_FAILED[$1]:-}${IS_SERVICE[*]} && $STATE != task && $STATE != job ]] && ((${#READY_FOR[@]} == 0))
}

# The outcome of such an array, for whoever comes after it: one that began and did not say how it ended was killed.
count_elements() {
    local u=$1 index kind state
    GOOD[$u]=0 BAD[$u]=0 GONE[$u]=0 SKIPPED[$u]=0 WANTED[$u]=0 WASTED[$u]=0
    for ((index = 0; index < REPLICAS[$u]; index++)); do
        state=cancelled
        [[ ! -e $J/log/${NAMES[$u]}.$index ]] || while IFS=$'\t' read -r _ kind _; do
            case $kind in
            succeeded | failed | cancelled | skipped) state=$kind ;;
            started | retrying) state=failed ;;
            esac
        done <"$J/log/${NAMES[$u]}.$index"
        count_end "$u" "$index" "$state"
    done
    verdict_of "$u"
}

# Elements of an array do not know each other: each adds its line to what was counted before, and sees whether all is
# decided now. One that went back to the queue in its last moment may have been counted.
settle_array() {
    local u=$1 name=${NAMES[$1]} ends=() last
    lock "$name"
    [[ ! -e $J/outcome/$name.ends ]] || mapfile -t ends <"$J/outcome/$name.ends"
    last=${ends[-1]:-- - 0 0 0 0 0 0}
    read -r _ _ GOOD[$u] BAD[$u] GONE[$u] SKIPPED[$u] WANTED[$u] WASTED[$u] <<<"$last"
    if ((${ATTEMPT:-1} == 1)) || [[ " ${ends[*]/#/;}" != *" ;$2 "* ]]; then
        count_end "$u" "$2" "$STATE"
        printf '%s ' "$2" "$STATE" "${GOOD[$u]}" "${BAD[$u]}" "${GONE[$u]}" "${SKIPPED[$u]}" "${WANTED[$u]}" >>"$J/outcome/$name.ends"
        printf '%s\n' "${WASTED[$u]}" >>"$J/outcome/$name.ends"
    fi
    verdict_of "$u"
    [[ $STATE != task && $STATE != job ]] || FOUND=failed
    if [[ $FOUND && ! -e $J/outcome/$name ]]; then
        outcome_of_piece "$u" "$FOUND"
        is_over "$u" || cancel_pieces "$PIECE"
    fi
    rmdir "$J/outcome/$name.lock"
}

count_end() {
    local u=$1 wanted=
    ! is_wanted "$u" "$2" || wanted=1
    case $3 in
    succeeded) GOOD[$u]=$((GOOD[$u] + 1)) ;;
    skipped) SKIPPED[$u]=$((SKIPPED[$u] + 1)) ;;
    cancelled) GONE[$u]=$((GONE[$u] + 1)) ;;
    *) BAD[$u]=$((BAD[$u] + 1)) ;;
    esac
    [[ $wanted ]] || return 0
    if [[ $3 == succeeded ]]; then WANTED[$u]=$((WANTED[$u] + 1)); else WASTED[$u]=$((WASTED[$u] + 1)); fi
}

# Whoever died in here is waited for no longer than that.
lock() {
    local tries=0
    until mkdir "$J/outcome/$1.lock" 2>/dev/null; do
        nap 0.05
        ((++tries < 600)) || { rmdir "$J/outcome/$1.lock" 2>/dev/null; tries=0; }
    done
}

is_wanted() { [[ ! ${GOAL[$1]:-} ]] || [[ ! ${GOAL_OF[$1]:-} ]] || among "$2" "${GOAL_OF[$1]}"; }
is_over() { ((GOOD[$1] + BAD[$1] + GONE[$1] + SKIPPED[$1] >= REPLICAS[$1])); }

# Decided as soon as it is certain.
verdict_of() {
    local u=$1
    FOUND=
    if ((SKIPPED[$u] == REPLICAS[$u])); then
        FOUND=skipped
    elif [[ ${MAX_FAILED[$u]:-} ]] && ((BAD[$u] > MAX_FAILED[$u])); then
        FOUND=failed
    elif [[ ${GOAL[$u]:-} ]]; then
        if ((WANTED[$u] >= GOAL[$u])); then
            FOUND=succeeded
        elif ((GOAL_SIZE[$u] - WASTED[$u] < GOAL[$u])) || is_over "$u"; then
            FOUND=failed
        fi
    elif is_over "$u"; then
        if ((BAD[$u])) && [[ ! ${MAX_FAILED[$u]:-} ]]; then
            FOUND=failed
        elif ((GONE[$u])); then
            FOUND=cancelled
        else
            FOUND=succeeded
        fi
    fi
}

# A rule says that the whole job has failed: only what runs always may still do so.
fail_job() {
    : >"$J/failed"
    : >"$J/cancelled"
    cancel_pieces $OTHERS
}
