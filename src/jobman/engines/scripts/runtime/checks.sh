# -- checks: has it started, is it ready, is it alive -----------------------------------------------------------

start_checks() {
    [[ ! ${begun+set}${ready+set}${alive+set} ]] || timer 0 check_on
}

# One after the other: first whether it has started, then the others, each at its own pace.
check_on() {
    local due_ready=0 due_alive=0 clock=0 bad_ready=0 good_ready=0 bad_alive=0 is_ready=
    if [[ ${begun+set} ]]; then until_started || return; fi
    [[ ! ${ready+set} ]] || due_ready=$(tenths "${ready[0]}")
    [[ ! ${alive+set} ]] || due_alive=$(tenths "${alive[0]}")
    while :; do
        if [[ ${ready+set} ]] && ((clock >= due_ready)); then
            if probe "${ready[@]}"; then good_ready=$((good_ready + 1)) bad_ready=0; else bad_ready=$((bad_ready + 1)) good_ready=0; fi
            due_ready=$((clock + $(tenths "${ready[1]}")))
            if [[ ! $is_ready ]] && ((good_ready >= ready[4])); then
                is_ready=1
                : >"$HERE.ready"
                [[ ! $DIRECT ]] || became_ready
            elif [[ ! $is_ready ]] && ((due_ready - clock > 10)); then
                due_ready=$((clock + 10))
            elif [[ $is_ready ]] && ((bad_ready >= ready[3])); then
                is_ready=
                rm -f "$HERE.ready"
                [[ ! $DIRECT ]] || tell not-ready "$KEY" "$ATTEMPT" '' '' '' "its ready check fails"
            fi
        fi
        if [[ ${alive+set} ]] && ((clock >= due_alive)); then
            if probe "${alive[@]}"; then bad_alive=0; else bad_alive=$((bad_alive + 1)); fi
            due_alive=$((clock + $(tenths "${alive[1]}")))
            ! ((bad_alive >= alive[3])) || { unhealthy alive "${alive[2]}"; return; }
        fi
        pause 0.1
        ((++clock))
    done
}

until_started() {
    local good=0 bad=0
    tick "${begun[0]}"
    while :; do
        if probe "${begun[@]}"; then good=$((good + 1)) bad=0; else bad=$((bad + 1)) good=0; fi
        if ((good >= begun[4])); then
            : >"$HERE.passed"
            [[ ! $DIRECT ]] || report started
            return 0
        fi
        ! ((bad >= begun[3])) || { unhealthy started "${begun[2]}"; return 1; }
        tick "${begun[1]}"
    done
}

tenths() { local whole=${1%.*} rest=; [[ $1 != *.* ]] || rest=${1#*.}; rest=${rest}0; echo "$((whole * 10 + ${rest:0:1}))"; }

unhealthy() { # WHICH TIMEOUT
    local words="its $1 check failed"
    [[ $PROBED != 124 && $PROBED != 137 ]] || words+=": it took longer than $2 s"
    echo "unhealthy:$words" >"$HERE.why"
    kill -USR2 "$ME"
}

probe() { # DELAY EVERY TIMEOUT FAILURES SUCCESSES KIND WORDS...
    local limit=$3 kind=$6
    shift 6
    case $kind in
    exec) (become "$(type -P timeout)" -k 1 "$limit" "$@") >/dev/null 2>&1 ;;
    tcp) timeout "$limit" bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"' - "$(port "$1")" 2>/dev/null ;;
    http) probe_http "$limit" "$@" ;;
    esac
    PROBED=$?
    return "$PROBED"
}

port() { [[ $1 == [0-9]* ]] && echo "$1" || { local found=PORT_${1^^}; found=${found//[^A-Z0-9]/_}; echo "${!found}"; }; }

# Plain requests need nothing but a shell; those with TLS need curl.
probe_http() { # TIMEOUT SCHEME PORT PATH HEADER...
    local limit=$1 scheme=$2 number path=$4 status
    number=$(port "$3")
    shift 4
    if [[ $scheme == https ]]; then
        local each headers=()
        for each in "$@"; do headers+=(-H "$each"); done
        status=$(curl -ks -o /dev/null -w '%{http_code}' -m "$limit" "${headers[@]}" "https://127.0.0.1:$number$path")
    else
        status=$(timeout "$limit" bash -c '
            exec 3<>"/dev/tcp/127.0.0.1/$1" || exit
            path=$2 && shift 2
            { printf "GET %s HTTP/1.0\r\nHost: localhost\r\n" "$path"; for each; do printf "%s\r\n" "$each"; done; printf "\r\n"; } >&3
            read -r _ status _ <&3 && echo "$status"' - "$number" "$path" "$@" 2>/dev/null)
    fi
    [[ $status == [23]?? ]]
}
