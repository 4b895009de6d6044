# shellcheck shell=bash
# shellcheck disable=SC2154 # lab/slurm, which sources this, has the rest
# The Slurm whose parts tests may break: its controller, and its nodes one by one.

# interrupt stop|start|restart: the controller dies without a word, comes back over what it has saved, or does both in
# good order.
interrupt() {
    expendable
    case ${1:-} in
        stop) halt KILL slurmctld ;;
        start) come_back ;;
        restart) halt TERM slurmctld && come_back ;;
        *) echo "usage: $0 ctld stop|start|restart" >&2; exit 2 ;;
    esac
}

come_back() {
    within 60 controls || cannot "slurmctld does not answer, see $cache/log/slurmctld"
}

# One that was killed may hold its port for a moment longer than its name, and the next one ends at once.
controls() {
    ! gone slurmctld || start_slurmctld
    [[ $(timeout 5 scontrol ping 2>/dev/null) == *' is UP'* ]]
}

# fail WHAT NAME: a node loses its power, has it back, has its spool filled up, or cleared.
fail() {
    local name=${2:-}
    expendable
    [[ ${1:-} == @(stop|start|fill|clear) ]] || { echo "usage: $0 node stop|start|fill|clear NAME" >&2; exit 2; }
    [[ " ${daemons[*]} " == *" slurmd-$name "* ]] || cannot "there is no node named '$name', only n1 to n$nodes"
    "$1_node"
}

stop_node() {
    halt KILL "slurmd-$name"
    purge of_the_node
}

# The step daemon has the log of its node open. What it runs has the name of the node in its environment.
of_the_node() {
    of_a_job "$1" && { grep -qzx "SLURMD_NODENAME=$name" "$1/environ" || logs_for_the_node "$1"; }
}

logs_for_the_node() {
    readlink "$1"/fd/* | grep -qFx "$cache/log/slurmd-$name"
}

# A controller that is not there either learns of the node later.
start_node() {
    ! gone "slurmd-$name" || start_slurmd "slurmd-$name"
    gone slurmctld || within 60 responds || cannot "$name does not come back, see $cache/log/slurmd-$name"
}

responds() {
    local state
    state=$(timeout 5 sinfo -h -n "$name" -p main -o %t 2>/dev/null)
    [[ -n $state && $state != @(down|unk)* && $state != *'*' ]]
}

# A file system over it that is full with its own root.
fill_node() {
    mountpoint -q "$cache/spool/$name" || mount -t tmpfs -o nr_inodes=1 jobman-full "$cache/spool/$name"
}

clear_node() {
    ! mountpoint -q "$cache/spool/$name" || umount -l "$cache/spool/$name"
}

clear_nodes() {
    { cut -d' ' -f2 /proc/mounts | grep -F "$cache/spool/" || true; } | xargs -r -n 1 umount -l
}

expendable() {
    [[ ${JOBMAN_LAB_SLURM:-} == faults ]] || cannot "others count on this Slurm: JOBMAN_LAB_SLURM=faults means another"
    { root && ! gone munged; } || cannot "Slurm is not running ($(starter) starts it; its logs: $cache/log)"
}
