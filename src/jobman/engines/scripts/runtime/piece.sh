# -- a task or group at the top: a job of the manager, or one of an array ------------------------------------

piece() { # UNIT INDEX
    local unit=$1 index=$2 key
    key=${NAMES[$unit]}.$index IS_FIRST=1 LAST=1 LITTER='' BOX_ABOVE= STOP=
    [[ -d $J/ready ]] || mkdir -p "$J/log" "$J/out" "$J/outcome" "$J/began" "$J/ready"
    LOG=$J/log/$key
    # One that is under way has passed all that stands between; its signals are kept until somebody can act on them.
    if is_underway; then
        replica "$unit" "$key" "$index"
        end_piece "$unit" "$index"
    fi
    # Whoever stops it leaves word before: what comes from now on is heard, and what came before is seen below.
    trap 'STOP=1' URG TERM
    if declare -F claim >/dev/null && ! claim; then exit 0; fi
    if [[ -e $J/cancelled && ${WHEN[$unit]} != always ]] || [[ -e $J/outcome/${NAMES[$unit]} ]]; then
        tell cancelled "$key" '' '' '' '' ''
        exit 1
    fi
    if [[ ${LATEST:-} ]] && is_too_late; then
        tell failed "$key" '' '' '' '' 'it did not start within its window'
        KEY=$key STATE=failed CODE=1 REASON=late
    elif declare -F may_enter >/dev/null && ! may_enter "$unit"; then
        tell skipped "$key" '' '' '' '' 'what it waits for will not happen'
        KEY=$key STATE=skipped CODE=1 REASON=
    else
        replica "$unit" "$key" "$index"
    fi
    end_piece "$unit" "$index"
}

end_piece() { # UNIT INDEX
    # One that was stopped just after its command had ended well.
    [[ ! $LITTER || $STATE == succeeded ]] || rm -rf "$LITTER"
    # One that goes back to the queue has not ended.
    if [[ $STATE == requeued ]]; then
        [[ $BECAUSE == requeued ]] || requeue_piece
        exit 1
    fi
    settle_piece "$1" "$2"
    if [[ $STATE == succeeded ]]; then
        [[ ! $LITTER ]] || exec rm -rf "$LITTER"
        exit 0
    fi
    exit "$(((${CODE:-0}) > 0 ? CODE : 1))"
}

outside() { # WORD
    local folder
    case $1 in
    started) : >"$J/began/$name.$INDEX" ;;
    ready)
        : >"$J/ready/$name.$INDEX"
        if ((replicas > 1)); then all_there "$J/ready/$name" || return 0; fi
        : >"$J/ready/$name"
        release_ready
        ;;
    esac
}

settle_piece() { # UNIT INDEX
    local u=$1 name=${NAMES[$1]}
    if ((REPLICAS[$u] == 1)); then
        case $STATE in
        succeeded | skipped | cancelled) outcome_of_piece "$u" "$STATE" ;;
        *) outcome_of_piece "$u" failed ;;
        esac
    elif declare -F settle_array >/dev/null && ! is_counted_later "$u"; then
        settle_array "$u" "$2"
    fi
    if [[ $STATE == job ]]; then fail_job; fi
    ((${#IS_SERVICE[@]} == 0)) || end_services
    # Those that waited for it to be ready wait in vain.
    if ((${#READY_FOR[@]})) && [[ -e $J/outcome/$name && ! -e $J/ready/$name ]]; then
        [[ $STATE == succeeded ]] && : >"$J/ready/$name" && release_ready || cancel_pieces "${READY_FOR[@]%%|*}"
    fi
}

# Only the first to say it says it.
outcome_of_piece() { # UNIT OUTCOME
    local place=$J/outcome/${NAMES[$1]}
    set -C
    if { printf '%s %s %s\n' "$2" "${CODE:-0}" "${KEY:-}" >"$place"; } 2>/dev/null; then
        set +C
        tell task "${NAMES[$1]}" '' '' "$2" '' ''
    fi
    set +C
}
