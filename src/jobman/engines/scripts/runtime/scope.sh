# -- a group: its tasks in their order, in the nodes that are there --------------------------------------------

attempt_group() {
    local me=$BASHPID
    trap say_again USR2
    tell started "$KEY" "$ATTEMPT" '' '' "$NODES" ''
    report started
    (
        trap 'STOPPING_ALL=1' URG TERM
        trap freeze_all WINCH
        kill -USR2 "$me"
        scope "$U" "$KEY/"
        printf '%s\t%s\t%s\t%s\n' "$OUTCOME" "$CODE" "$REASON" "$RESTARTING" >"$J/out/$KEY/$ATTEMPT/scope"
    ) &
    PID=$!
    [[ ! $STOP ]] || stop_attempt
    wait_for "$PID"
    PID=
    local outcome restarting
    IFS=$'\x1f' read -r outcome CODE REASON restarting < <(tr '\t' '\037' <"$J/out/$KEY/$ATTEMPT/scope")
    case $outcome in
    succeeded) REASON='' CODE=0 ;;
    skipped | cancelled) REASON=$outcome ;;
    *) [[ $REASON == timeout ]] || REASON=exit ;;
    esac
    # A rule of a task in it says that it begins anew.
    if [[ $restarting && ! $STOP ]]; then
        REASON=exit
        rules=("retry|||" "${rules[@]}")
    fi
}

# What was meant for a shell before it listened is lost: it says when it does.
say_again() {
    INTERRUPTED=1
    [[ ! $PID || ! $STOP ]] || kill -URG "$PID" 2>/dev/null
    [[ ! $PID || ! $FROZEN ]] || kill -WINCH "$PID" 2>/dev/null
}

scope() { # UNIT PREFIX
    GROUP=$1 PREFIX=$2
    local members=(${MEMBERS[$1]}) deadline='' u
    [[ ! ${duration:-} ]] || deadline=$((SECONDS + ${duration%.*}))
    declare -gA STARTING=() VERDICT=() OUTCOME_OF=() FRESH=() LIVE=() GOOD=() BAD=() GONE=() SKIPPED=() BEGUN=() READY=() PIDS=() UP=() LATER=() WANTED=() WASTED=()
    OUTCOME='' CODE='' REASON='' RESTARTING='' CLOSING='' FAILED='' GROUP_IS_READY='' FROZEN_AT=''
    local pipe
    pipe=$(mktemp -u "${TMPDIR:-/tmp}/jobman.XXXXXXXX")
    mkfifo -m 600 "$pipe"
    exec {BOX}<>"$pipe"
    rm -f "$pipe"
    clock &
    CLOCK=$!
    for u in "${members[@]}"; do
        FRESH[$u]=0 LIVE[$u]=0 GOOD[$u]=0 BAD[$u]=0 GONE[$u]=0 SKIPPED[$u]=0 BEGUN[$u]=0 READY[$u]=0 WANTED[$u]=0 WASTED[$u]=0
    done
    while :; do
        if [[ ${STOPPING_ALL:-} && ! $CLOSING ]]; then close_scope; fi
        if [[ $deadline ]] && ((SECONDS >= deadline)) && [[ ! $CLOSING && ! $FROZEN_AT ]] && ((SECONDS >= deadline + $(more_time))); then
            tell stopping "${PREFIX%/}" "$ATTEMPT" '' timeout '' "its time is up"
            REASON=timeout FAILED=1
            close_scope
        fi
        for u in "${members[@]}"; do settle_unit "$u"; done
        for u in "${members[@]}"; do start_unit "$u"; done
        if all_decided; then break; fi
        hear
    done
    stop_services
    kill "$CLOCK" 2>/dev/null
    judge_scope
}

hear() {
    local word u index state code reason says
    IFS=$'\x1f' read -r -u "$BOX" word u index state code reason says || return 0
    "heard_$word" "$u" "$index" "$state" "$code" "$reason" "$says"
}

heard_tick() { :; }

# What is left of its time is kept while it stands still.
freeze_all() {
    local each
    if is_frozen; then
        [[ ! ${STOPPING_ALL:-}$CLOSING ]] || return 0
        FROZEN_AT=${FROZEN_AT:-$SECONDS}
    elif [[ $FROZEN_AT ]]; then
        [[ ! $deadline ]] || deadline=$((deadline + SECONDS - FROZEN_AT))
        FROZEN_AT=
    fi
    for each in "${!UP[@]}"; do kill -WINCH "${PIDS[$each]}" 2>/dev/null; done
}

# Somebody must say every second that a second has passed: a shell that traps signals cannot wait for it by itself.
clock() {
    trap - URG TERM USR1
    while pause 1; do printf 'tick\n' >&"$BOX"; done
}

heard_up() { # UNIT INDEX
    UP[$1.$2]=1
    [[ ! ${LATER[$1.$2]:-} ]] || kill -s "${LATER[$1.$2]}" "${PIDS[$1.$2]}" 2>/dev/null
    [[ ! $FROZEN_AT ]] || kill -WINCH "${PIDS[$1.$2]}" 2>/dev/null
}

heard_started() {
    BEGUN[$1]=$((BEGUN[$1] + 1))
    unset "STARTING[$1.$2]"
}

# A group is ready when all its tasks that can be are.
heard_ready() {
    local u
    READY[$1]=$((READY[$1] + 1))
    for u in ${MEMBERS[$GROUP]}; do
        [[ ! ${CAN_BE_READY[$u]:-} ]] || ((READY[$u] >= REPLICAS[$u])) || return 0
    done
    [[ $GROUP_IS_READY ]] || tell ready "${PREFIX%/}" "$ATTEMPT" '' '' '' ''
    GROUP_IS_READY=1
    report ready
}

heard_end() { # UNIT INDEX STATE CODE REASON
    local u=$1
    unset "PIDS[$u.$2]" "STARTING[$u.$2]" "UP[$u.$2]" "LATER[$u.$2]"
    LIVE[$u]=$((LIVE[$u] - 1))
    count_end "$u" "$2" "$3"
    case $3 in
    succeeded | skipped | cancelled) ;;
    *) [[ $CODE || ${IS_SERVICE[$u]:-} ]] || CODE=$4 ;;
    esac
    case $3 in
    task) close_unit "$u" failed ;;
    job) FAILED=1 && fail_job && close_scope ;;
    restart) RESTARTING=1 && close_scope also ;;
    esac
}

# Decided as soon as it is certain; then the rest is stopped.
settle_unit() {
    local u=$1
    [[ ! ${OUTCOME_OF[$u]:-} ]] || return
    if [[ ! ${VERDICT[$u]:-} && ! ${IS_SERVICE[$u]:-} ]]; then
        verdict_of "$u"
        [[ ! $FOUND ]] || close_unit "$u" "$FOUND"
    fi
    is_over "$u" || return
    [[ ${VERDICT[$u]:-} ]] || verdict_of "$u"
    OUTCOME_OF[$u]=${VERDICT[$u]:-${FOUND:-cancelled}}
    tell task "$PREFIX${NAMES[$u]}" '' '' "${OUTCOME_OF[$u]}" '' ''
}

close_unit() { # UNIT VERDICT
    local u=$1 each
    [[ ! ${VERDICT[$u]:-} ]] || return
    VERDICT[$u]=$2
    stop_replicas "$u"
}

stop_replicas() { # UNIT [SIGNAL]
    local u=$1 each left
    left=$((REPLICAS[$u] - FRESH[$u]))
    FRESH[$u]=${REPLICAS[$u]} GONE[$u]=$((GONE[$u] + left))
    for each in "${!PIDS[@]}"; do
        [[ $each == "$u."* ]] || continue
        # One that does not listen yet is told when it does.
        if [[ ${UP[$each]:-} ]]; then kill -s "${2:-URG}" "${PIDS[$each]}" 2>/dev/null; else LATER[$each]=${2:-URG}; fi
    done
}

# Nothing more may start but what runs always; with a word, not even that.
close_scope() { # [also]
    local u
    CLOSING=1
    for u in ${MEMBERS[$GROUP]}; do
        [[ ! ${IS_SERVICE[$u]:-} ]] || continue
        [[ ${WHEN[$u]} == always && ! ${1:-} ]] || close_unit "$u" cancelled
    done
}

# May it start: now, later or never?
may_start() {
    local u=$1 edge after when answer failures='' failed='' open=''
    MAY=later
    if [[ ${IS_CLEANUP[$u]:-} ]]; then
        ! is_unsettled || return
        [[ ${WHEN[$u]} != failure ]] || some_failed || { MAY=never && return; }
        MAY=now
        return
    fi
    MAY=now
    for edge in ${AFTER[$u]:-}; do
        after=${edge%%:*} when=${edge#*:}
        look_at "$after"
        if [[ $when == failure ]]; then
            failures=1
            [[ $OTHER ]] || open=1
            [[ $OTHER != failed ]] || failed=1
            continue
        fi
        case $when in
        success) [[ $OTHER == succeeded ]] ;;
        any) [[ $OTHER ]] ;;
        started) [[ $OTHER_BEGUN ]] ;;
        ready) [[ $OTHER_READY || $OTHER == succeeded ]] ;;
        esac || { [[ $OTHER ]] && MAY=never && return; MAY=later; }
    done
    [[ ! $failures ]] || { [[ $open ]] && MAY=later; } || [[ $failed ]] || MAY=never
}

# One of this scope, or further out: those leave word in a file.
look_at() {
    local place
    OTHER='' OTHER_BEGUN='' OTHER_READY=''
    if [[ ${REPLICAS[$1]:-} && " ${MEMBERS[$GROUP]} " == *" $1 "* ]]; then
        OTHER=${OUTCOME_OF[$1]:-}
        ((BEGUN[$1] < REPLICAS[$1])) || OTHER_BEGUN=1
        ((READY[$1] < REPLICAS[$1])) || OTHER_READY=1
    else
        place=$J/outcome/${NAMES[$1]}
        [[ ! -e $place ]] || read -r OTHER _ <"$place"
        [[ ! -e $J/began/${NAMES[$1]} ]] || OTHER_BEGUN=1
        [[ ! -e $J/ready/${NAMES[$1]} ]] || OTHER_READY=1
    fi
}

is_unsettled() {
    local u
    for u in ${MEMBERS[$GROUP]}; do
        [[ ${WHEN[$u]} != success || ${IS_SERVICE[$u]:-} || ${OUTCOME_OF[$u]:-} ]] || return 0
    done
    return 1
}

some_failed() {
    local u
    [[ ! $FAILED ]] || return 0
    for u in ${MEMBERS[$GROUP]}; do
        [[ ${WHEN[$u]} != success || ${IS_SERVICE[$u]:-} || ${OUTCOME_OF[$u]:-} != failed ]] || return 0
    done
    return 1
}

all_decided() {
    local u
    for u in ${MEMBERS[$GROUP]}; do [[ ${IS_SERVICE[$u]:-} || ${OUTCOME_OF[$u]:-} ]] || return 1; done
}

# What stands below one that blocks waits for its end.
is_behind() {
    local u
    for u in ${MEMBERS[$GROUP]}; do
        [[ $u != "$1" ]] || return 1
        [[ ! ${BLOCKS[$u]:-} || ${OUTCOME_OF[$u]:-} ]] || return 0
    done
    return 1
}

start_unit() {
    local u=$1 gate
    ((FRESH[$u] < REPLICAS[$u])) && [[ ! ${VERDICT[$u]:-} ]] || return
    ! is_behind "$u" || return
    if [[ $CLOSING ]]; then
        [[ ${WHEN[$u]} == always ]] || return
    else
        [[ ! -e $J/held ]] || return
        [[ ! ${HOLDS[$u]:-} || -e $J/released ]] || return
        for gate in ${GATES[$u]:-}; do [[ -e $J/gates/$gate ]] || return; done
    fi
    may_start "$u"
    ! is_overtaking "$u" || return
    case $MAY in
    now) while ((FRESH[$u] < REPLICAS[$u] && LIVE[$u] < ROOM[$u])); do start_replica "$u" "${FRESH[$u]}"; done ;;
    never)
        tell skipped "$PREFIX${NAMES[$u]}.0" '' '' '' '' 'what it waits for will not happen'
        SKIPPED[$u]=$((REPLICAS[$u] - FRESH[$u])) FRESH[$u]=${REPLICAS[$u]}
        settle_unit "$u"
        ;;
    esac
}

# Tasks start in the order written: one that was just launched has a moment to begin before the next is.
is_overtaking() {
    local each
    [[ $MAY == now ]] || return
    for each in "${!STARTING[@]}"; do
        ((${each%%.*} >= $1 || SECONDS - STARTING[$each] > 1)) || return 0
    done
    return 1
}

start_replica() {
    local u=$1 index=$2
    FRESH[$u]=$((index + 1)) LIVE[$u]=$((LIVE[$u] + 1)) STARTING[$u.$index]=$SECONDS
    (
        STOP=''
        trap 'STOP=1' URG TERM
        trap 'STOP=served' USR1
        trap : WINCH
        printf 'up\x1f%s\x1f%s\n' "$u" "$index" >&"$BOX"
        BOX_ABOVE=$BOX IS_FIRST= LAST=
        replica "$u" "$PREFIX${NAMES[$u]}.$index" "$index"
        # In one piece: others may end in the same moment.
        printf '%s\x1f%s\x1f%s\x1f%s\x1f%s\x1f%s\x1f%s\n' end "$u" "$index" "$STATE" "$CODE" "$REASON" "${SAYS:0:500}" >&"$BOX_ABOVE"
    ) &
    PIDS[$u.$index]=$!
}

stop_services() {
    local u open=1
    for u in ${MEMBERS[$GROUP]}; do [[ ! ${IS_SERVICE[$u]:-} ]] || stop_replicas "$u" USR1; done
    while [[ $open ]]; do
        open=
        for u in ${MEMBERS[$GROUP]}; do
            ((LIVE[$u] == 0)) || open=1
            settle_unit "$u"
        done
        [[ ! $open ]] || hear
    done
}

judge_scope() {
    local u all_skipped=1 any_due=
    OUTCOME=succeeded
    for u in ${MEMBERS[$GROUP]}; do
        [[ ! ${IS_SERVICE[$u]:-} ]] || continue
        case ${OUTCOME_OF[$u]} in
        failed) OUTCOME=failed ;;
        cancelled) [[ $OUTCOME == failed ]] || OUTCOME=cancelled ;;
        skipped) ! was_let_down "$u" || OUTCOME=failed ;;
        esac
        [[ ${WHEN[$u]} != success ]] || { any_due=1 && [[ ${OUTCOME_OF[$u]} == skipped ]] || all_skipped=; }
    done
    [[ ! $FAILED ]] || OUTCOME=failed
    [[ $OUTCOME != succeeded || ! $any_due || ! $all_skipped ]] || OUTCOME=skipped
}

# Whether it never began because a service it needs had failed.
was_let_down() {
    local edge
    for edge in ${AFTER[$1]:-}; do
        [[ ${edge#*:} != failure && ${edge#*:} != any && ${IS_SERVICE[${edge%%:*}]:-} ]] || continue
        ((BAD[${edge%%:*}] == 0)) || return 0
    done
    return 1
}
