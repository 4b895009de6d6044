# -- Flux's part ---------------------------------------------------------------------------------------------

export FLUX_F58_FORCE_ASCII=1
# Replicas are jobs of their own: which one this is, its script is told as an argument.
ELEMENT=${1:-0}
# A script with steps has an instance of its own, and is a job of the one around it; others are jobs where they are.
OWN=${FLUX_JOB_ID:-${FLUX_ENCLOSING_ID:-}}
outer() { if [[ ${FLUX_JOB_ID:-} ]]; then flux "$@"; else flux --parent "$@"; fi; }

allocation() {
    local resources
    resources=$(outer job info "$OWN" R)
    nodes_in "$resources"
    cores_of "$resources" ''
}

# The nodes of an allocation, in the order of the ranks of its brokers.
nodes_in() {
    local text=${1// /}
    text=${text#*\"nodelist\":\[}
    text=${text%%\"\]*}
    text=$(hosts_of "${text//\"/}")
    NODELIST=${text//$'\n'/,} NODES=$NODELIST NNODES=$(wc -l <<<"$text")
}

hosts_of() { # LIST such as n[1-3,07],login
    local list=$1 head tail spans span low number
    while [[ $list ]]; do
        head=${list%%[,[]*}
        list=${list:${#head}}
        if [[ $list == \[* ]]; then
            spans=${list#\[} && spans=${spans%%\]*} list=${list#*\]}
            tail=${list%%,*}
            list=${list:${#tail}}
            for span in ${spans//,/ }; do
                low=${span%-*}
                for ((number = 10#$low; number <= 10#${span#*-}; number++)); do
                    printf '%s%0*d%s\n' "$head" "${#low}" "$number" "$tail"
                done
            done
        else
            echo "$head"
        fi
        list=${list#,}
    done
}

# Cores of the broker of this rank, or of the first; RANKS are all that have a part in it.
cores_of() { # RESOURCES RANK
    local text=${1// /} span
    local entry='\{"rank":"([0-9,-]+)","children":\{([^}]*)\}\}(.*)' core='"core":"([0-9,-]+)"'
    RANKS='' ALL_CORES=
    while [[ $text =~ $entry ]]; do
        local ranks=${BASH_REMATCH[1]} children=${BASH_REMATCH[2]}
        text=${BASH_REMATCH[3]} RANKS+=${RANKS:+,}$ranks
        [[ ! $ALL_CORES ]] || continue
        [[ ! $2 ]] || among "$2" "$ranks" || continue
        [[ $children =~ $core ]] || continue
        for span in ${BASH_REMATCH[1]//,/ }; do ALL_CORES=$((ALL_CORES + ${span#*-} - ${span%-*} + 1)); done
    done
    ALL_CORES=${ALL_CORES:-1}
}

# Which copy this is, and where.
place() {
    local names=(${NODELIST//,/ }) number
    RANK=0 STEP='' NODE_RANK=0
    # When the limit of its instance is over, a copy is told that, too.
    trap on_end ALRM
    if [[ ! $DIRECT ]]; then
        RANK=$FLUX_TASK_RANK STEP=$FLUX_JOB_ID NODE_RANK=$(flux getattr rank)
        cores_of "$(flux job info "$STEP" R)" "$NODE_RANK"
        NODES=
        for number in "${!names[@]}"; do ! among "$number" "$RANKS" || NODES+=${NODES:+,}${names[number]}; done
    fi
    NODE=${names[NODE_RANK]}
}

# A copy's program is in a file: Flux fills in what is in double braces on a command line.
run_step() { # flux run OPTION... bash -c PROGRAM NAME
    local count=$#
    printf '%s\n' "${@:count-1:1}" >"$folder/copy"
    exec "${@:1:count-4}" --job-name="$KEY.$ATTEMPT" bash "$folder/copy"
}

# One that has not begun may wait for its cores.
stop_step() {
    local id
    signal_step URG && return
    for id in $(flux jobs -n -o '{id.f58plain}' --name="$KEY.$ATTEMPT"); do flux cancel "$id" 2>/dev/null; done
}

# To copies of a step: a signal that those who do not listen for it do not notice.
signal_step() { # SIGNAL
    local id
    [[ -e $folder/0.began ]] && IFS=$'\t' read -r _ id _ <"$folder/0.began" && flux job kill -s "$1" "$id" 2>/dev/null
}

ids_of() { # PIECE...: each is an ID, or ID@URGENCY
    local piece ids wanted=" $* "
    IDS=()
    while read -r piece ids; do
        [[ $wanted != *" $piece "* ]] || IDS+=(${ids//,/ })
    done <"$J/ids"
}

release_pieces() {
    local id urgency
    ids_of "$@"
    for id in "${IDS[@]}"; do
        urgency=default
        [[ $id != *@* ]] || urgency=${id#*@}
        outer job urgency "${id%@*}" "$urgency" 2>/dev/null
    done
}

# Those that wait go at once; those that run are asked, and end as their grace allows. They are found by their names:
# their ids may not be written down yet.
cancel_pieces() { # PIECE...
    local id state name piece wanted=" $* " waiting=() running=()
    while read -r id state name; do
        [[ $name == *" jobman:$JOBMAN_JOB_ID" || $name == *" jobman:$JOBMAN_JOB_ID@"* ]] || continue
        piece=${name% jobman:*}
        [[ $piece != *\] ]] || piece=${piece%\[*}
        piece=${piece##*/}
        # Of a group that says it, more may run than the one inside it that does: it hears it like the others.
        [[ $wanted == *" $piece "* ]] && { [[ $id != "$OWN" ]] || ((${#FRESH[@]})); } || continue
        if [[ $state == RUN ]]; then running+=("$id"); else waiting+=("$id"); fi
    done < <(outer jobs --filter=pending,running --count=0 -n -o '{id.f58plain} {state} {name}' 2>/dev/null)
    ((${#waiting[@]} == 0)) || outer cancel "${waiting[@]}" 2>/dev/null
    ((${#running[@]} == 0)) || outer job kill -s URG "${running[@]}" 2>/dev/null
    return 0
}

# -- signals -------------------------------------------------------------------------------------------------

# A signal for a job reaches all processes of its script at once. So the work is in a group of its own, and hears
# from here what is meant for it.
guarded() { # COMMAND...
    local status
    WORK='' HURRIED='' ASKED_TO_STOP=
    trap 'ASKED_TO_STOP=1; [[ ! $WORK ]] || kill -URG "$WORK"' URG
    trap '[[ ! $WORK ]] || kill -WINCH "$WORK"' WINCH
    trap hurry TERM HUP
    trap ': >"$J/outcome/.late.$PIECE.$ELEMENT"; hurry' ALRM
    trap : USR1 USR2
    set -m
    ("$@") &
    WORK=$!
    set +m
    [[ ! $ASKED_TO_STOP ]] || kill -URG "$WORK"
    while :; do
        wait "$WORK" 2>/dev/null
        status=$?
        kill -0 "$WORK" 2>/dev/null || break
        [[ ! $HURRIED ]] || end_soon
    done
    exit "$status"
}

# Flux itself ends the job, and kills this script in five seconds, but not all that it has started.
hurry() {
    [[ ! $HURRIED && $WORK ]] || return 0
    HURRIED=1
    kill -TERM "$WORK"
    # Only in an instance that is there for this script: in any other all of it would be somebody else's jobs, too.
    [[ ${FLUX_JOB_ID:-} || $(</proc/$PPID/comm) != flux-broker* ]] || flux cancel --all 2>/dev/null
}

# Why Flux ends this script: at its limit it sends a signal of its own.
why_stopped() {
    BECAUSE=cancelled
    [[ ! -e $J/outcome/.late.$PIECE.$ELEMENT ]] || BECAUSE=timeout
}

end_soon() {
    local tries=0
    while kill -0 "$WORK" 2>/dev/null && ((++tries < 40)); do
        nap 0.1
        ((tries != 20)) || kill_below "$WORK"
    done
    kill_below 0
}

# Processes that came of this script, but for those of one group: commands have groups of their own.
kill_below() { # GROUP
    local found
    found=$(ps -e -o pid=,ppid=,pgid= | awk -v top="$$" -v spared="$1" '
        { above[$1] = $2; group[$1] = $3 }
        END { for (pid in above) { for (at = pid; at > 1 && at != top; at = above[at]); if (at == top && pid != top && group[pid] != spared) print pid } }')
    [[ ! $found ]] || kill -KILL $found 2>/dev/null
}

# A copy that Flux ends has as little time: what it runs is killed before Flux kills the copy itself.
on_end() {
    on_stop
    [[ ! $CHILD ]] || timer 3 kill_child "$CHILD"
}
