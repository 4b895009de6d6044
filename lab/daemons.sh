# shellcheck shell=bash
# shellcheck disable=SC2154 # packages.sh, sourced before, sets the cache
# Sourced, after packages.sh, by the scripts that keep daemons running. A daemon has a name; its process is found
# again by number and birth, so that a number left behind by a killed machine never means a stranger's process.

# launch NAME COMMAND…: in the background, in a session of its own, output to NAME.out.
launch() {
    local name=$1
    shift
    mkdir -p "$cache/run"
    # The lock of this script is not the daemon's to hold, nor is the folder it was called from.
    (cd / && exec setsid "$@") </dev/null >"$cache/run/$name.out" 2>&1 9>&- &
    echo "$! $(birth $!)" >"$cache/run/$name.pid"
}

# birth PID: what no later process of the same number shares; nothing of one that is dead and not yet buried.
birth() {
    local stat words
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    # The name, in brackets, may contain anything. Behind it come the state and, as the 20th word, the start time.
    read -ra words <<<"${stat##*) }"
    [[ ${words[0]} == [ZX] ]] || echo "${words[19]}@$(</proc/sys/kernel/random/boot_id)"
}

# pid_of NAME: the number of its process, nothing if it does not run.
pid_of() {
    local pid born
    read -r pid born 2>/dev/null <"$cache/run/$1.pid" || return 0
    [[ -z $born || $born != "$(birth "$pid")" ]] || echo "$pid"
}

# within SECONDS COMMAND…: repeat it until it succeeds.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.05
    done
}

# halt SIGNAL NAME…: ask all of them at once, and force those that are still there after ten seconds.
halt() {
    local signal=$1 name pid
    shift
    for name in "$@"; do
        pid=$(pid_of "$name")
        [[ -z $pid ]] || kill "-$signal" "$pid" || true
    done
    for name in "$@"; do
        within 10 gone "$name" || kill -KILL "$(pid_of "$name")" || true
        rm -f "$cache/run/$name.pid"
    done
}

gone() {
    [[ -z $(pid_of "$1") ]]
}

# purge TEST: kill every process whose folder in /proc passes the test, until there is none.
purge() {
    within 10 none_left "$1" || true
}

none_left() {
    local process found=()
    for process in /proc/[0-9]*; do
        ! "$1" "$process" 2>/dev/null || found+=("${process##*/}")
    done
    [[ ${#found[@]} == 0 ]] || { kill -KILL "${found[@]}" || true; return 1; }
}
