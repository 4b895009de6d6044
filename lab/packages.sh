# shellcheck shell=bash
# Sourced by the scripts whose component comes from Debian's packages.
set -euo pipefail

# The folder of the script that sources this.
cache=$(realpath -m "${JOBMAN_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jobman-lab}/${0##*/}")

# cannot REASON: this machine does not have it.
cannot() {
    echo "$1"
    exit 3
}

# Why `up` could not install, in words.
obstacle() {
    if ! command -v apt-get >/dev/null; then
        echo " (there is no apt-get to install from)"
    elif [[ $(id -u) != 0 ]]; then
        echo " (only root can install)"
    elif [[ -e $cache/failed ]]; then
        echo " (apt-get failed, see $cache/apt.log)"
    else
        echo " (lab/up installs it)"
    fi
}

# install PACKAGE…: do what can be done; `obstacle` tells of the rest.
install() {
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 0
    mkdir -p "$cache"
    : >"$cache/apt.log"
    rm -f "$cache/failed"
    # Nothing that somebody installed makes way for a component.
    apt install --no-install-recommends --no-remove "$@" || touch "$cache/failed"
}

apt() {
    # The package lists may be missing or too old; they are fetched only if that turns out to matter.
    apt_get "$@" || { apt_get update && apt_get "$@"; }
}

# unpack_busybox: the static one to $cache/busybox/bin, not installed, since it would displace another.
unpack_busybox() {
    rm -rf "$cache"/busybox*
    if ! { cd "$cache" && apt download busybox-static && dpkg-deb -x busybox-static_*.deb busybox; }; then
        echo "apt-get did not give busybox-static, see $cache/apt.log"
        return 1
    fi
}

apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 \
        -o DPkg::Path="$(still):/usr/sbin:/usr/bin:/sbin:/bin" "$@" >>"$cache/apt.log" 2>&1 </dev/null 9>&-
}

# A folder of programs that keep packages from starting their daemons: a test wants its own, not the system's.
still() {
    local name
    mkdir -p "$cache/still"
    for name in invoke-rc.d deb-systemd-invoke pg_createcluster; do
        ln -sfn /bin/true "$cache/still/$name"
    done
    echo "$cache/still"
}

# alone COMMAND…: while no other `up` or `down` of this script is at work.
alone() {
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    "$@"
}

# dispatch COMMAND: the words that every script of the lab knows.
dispatch() {
    case ${1:-} in
        up | down) alone "$1" ;;
        status) status ;;
        *) echo "usage: $0 up|down|status [COMPONENT]" >&2; exit 2 ;;
    esac
}
