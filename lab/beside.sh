# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # who sources this has the rest
# Sourced, behind own.sh, by the scripts of components that stand beside the usual cluster of the lab.

nodes=(lab-1 lab-2)
# Of the machine, as pods see it: the address of the first node.
address=100.127.0.1
# Only the usual cluster has nodes whose pods need anything.
unset JOBMAN_LAB_CLUSTER
find_own

# find_cluster: sets `KUBECONFIG`, `pki` and `bin`, as the script of the cluster tells.
find_cluster() {
    local told
    [[ -z $own ]] || cannot "it belongs to the cluster of the lab, and not to $whose"
    told=$("$here/kubernetes" status) || cannot "${told##*$'\n'}"
    export KUBECONFIG=${told#*JOBMAN_LAB_KUBECONFIG=}
    KUBECONFIG=${KUBECONFIG%%$'\n'*}
    pki=${KUBECONFIG%/*}
    bin=${told#*JOBMAN_LAB_KUBECTL=}
    bin=${bin%%$'\n'*}
    bin=${bin%/*}
}

# missing: why a program is not there that Go builds.
missing() {
    if ! command -v go >/dev/null; then
        echo "there is no Go to build it with"
    elif [[ -s $cache/build.log ]]; then
        echo "that failed, see $cache/build.log"
    else
        echo "lab/up does it, once"
    fi
}

# of_node NAME WORD…: a command of its containerd.
of_node() {
    ctr --address "${pki%/*}/nodes/$1/containerd.sock" --namespace k8s.io "${@:2}"
}
