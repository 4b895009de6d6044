# -- what happened, and when ---------------------------------------------------------------------------------

now() { at=${EPOCHREALTIME:-}; at=${at/,/.}; [[ $at ]] || printf -v at '%(%s)T' -1; }

tell() { # KIND KEY ATTEMPT CODE REASON NODES MESSAGE
    local text=${7:-}
    now
    text=${text//[$'\t\n']/ }
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$at" "$1" "${2:-}" "${3:-}" "${4:-}" "${5:-}" "${6:-}" "$text" >>"$LOG"
}

# Sleeps without a process of its own; only for those who trap no signals, which may make it sleep for ever.
pause() {
    [[ ${IDLE:-} ]] || exec {IDLE}<> <(:)
    read -rt "$1" -u "$IDLE" || :
}

# Sleeps for those who do; a signal cuts it short.
nap() {
    sleep "$1" &
    wait "$!" 2>/dev/null
}

among() { # NUMBER SPANS such as 1-3,7
    local span
    for span in ${2//,/ }; do
        (($1 >= ${span%-*} && $1 <= ${span#*-})) && return
    done
    return 1
}
