# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # lab/kubernetes, which sources this, has the rest
# Sourced by lab/kubernetes. Nodes of known sizes, for those who need so many nodes with so many cores and nobody
# beside them: real ones, with a kubelet and containers, whose cores are counted out and not those of this machine.

declare -A cores=([lab-4]=1 [lab-5]=4 [lab-6]=4 [lab-7]=4)
declare -A pools=([1x1]="lab-4" [1x4]="lab-7" [1x4x4]="lab-7" [2x4]="lab-5 lab-6" [3x4]="lab-5 lab-6 lab-7")
sized=(lab-4 lab-5 lab-6 lab-7)
gpus=lab-7
taint=jobman.io/sized

# Of the cluster that may lose its API server: others than those that run beside it.
size_expendable() {
    cores=([lab-8]=8 [lab-9]=8) pools=([2x8]="lab-8 lab-9")
    sized=(lab-8 lab-9)
}

build_gpus() {
    [[ -x $bin/gpus ]] || (
        cd "$here/go/kubernetes" &&
            CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "-s -w" -o "$bin/gpus" ./gpus
    )
}

# A kubelet takes devices from a plugin, and deals them out to containers itself.
start_gpus() {
    local folder=$cache/nodes/$gpus/devices
    within 20 test -S "$folder/kubelet.sock" || return 0
    launch "gpus-$gpus" "$bin/gpus" "$folder" 4
}

# A label for each pool that a node is in: jobman.io/2x4=pool.
sized_labels() {
    local pool
    for pool in "${!pools[@]}"; do
        [[ " ${pools[$pool]} " != *" $1 "* ]] || printf ',jobman.io/%s=pool' "$pool"
    done
}

# What tests find in their environment: 1x1:lab-4 2x4:lab-5,lab-6 and so on.
sized_pools() {
    local pool
    for pool in "${!pools[@]}"; do
        echo "$pool:${pools[$pool]// /,}"
    done | sort | paste -sd ' '
}

# counted NAME: as many cores as that in the place of the machine's, which is what a kubelet reads of them. It gives
# groups of processes the numbers that it finds, so all of them are cores that there are: those of another NUMA node
# have the same ones again.
counted() {
    local tree=$cache/nodes/$1/cores number here core
    here=$(nproc)
    rm -rf "$tree"
    # Where all kubelets of a machine expect plugins, whatever folder they were given.
    mkdir -p "$cache/nodes/$1/devices" /var/lib/kubelet/device-plugins
    for ((number = 0; number < cores[$1]; number++)); do
        core=$tree/node$((number / here))/cpu$((number % here))/topology
        mkdir -p "$core" "$tree/node$((number / here))/hugepages"
        echo "$number" >"$core/core_id"
        echo "$((number / here))" >"$core/physical_package_id"
        cat /sys/devices/system/node/node0/meminfo >"${core%/cpu*}/meminfo"
        echo 10 >"${core%/cpu*}/distance"
    done
}

# stand_apart NAME DAEMON: sets `apart`, the words before a command of a node with which it sees its own.
# What mounts and what uses it have to see the same, so a kubelet goes where the containerd of its node is.
stand_apart() {
    apart=()
    if [[ -z ${cores[$1]:-} ]]; then
        return
    elif [[ $2 == containerd ]]; then
        counted "$1"
        # shellcheck disable=SC2016 # the shell in between expands them
        apart=(unshare --mount sh -c 'mount --bind "$0/cores" /sys/devices/system/node &&
            mount --bind "$0/devices" /var/lib/kubelet/device-plugins && exec "$@"' "$cache/nodes/$1")
    else
        apart=(nsenter "--mount=/proc/$(pid_of "containerd-$1")/ns/mnt")
    fi
}
