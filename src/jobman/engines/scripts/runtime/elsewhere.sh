# -- copies that are not in this shell -----------------------------------------------------------------------

launch() {
    "${step[@]}" bash -c "$(program copy)" "jobman: $KEY" >"$folder/launch" 2>&1 </dev/null &
    PID=$!
    [[ ! $STOP ]] || stop_attempt
    watch_copies
    wait_for "$PID"
    PID=
    seen
    judge
}

# A copy elsewhere knows nothing of this script: it is given what it needs.
program() { # COMMAND...
    local JOBMAN_FOUND=()
    used_since
    # What is exported there, and what this script has changed of it.
    echo "mapfile -d '' -t JOBMAN_INHERITED </proc/self/environ"
    echo "JOBMAN_INHERITED+=(${JOBMAN_FOUND[*]@Q})"
    declare -f
    declare -p U J KEY ATTEMPT INDEX LOG DIRECT NODES NODELIST NNODES PIECE JOBMAN_JOB_ID JOBMAN_JOB_NAME \
        "${OF_A_UNIT[@]}" 2>/dev/null
    printf '%q ' "$@"
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
    for line in "$folder"/*.why; do
        [[ ! -e $line ]] || { stopping_for "$(<"$line")" && break; }
    done
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
