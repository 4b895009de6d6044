# shellcheck shell=bash
# Sourced by the scripts of a cluster, behind packages.sh: whether somebody's own is meant in the place of the lab's.

# find_own: sets `own` to its kubeconfig, and `whose` to what names it; both are empty where the lab's is meant.
find_own() {
    own='' whose=''
    # The other clusters of the lab are never anybody's own.
    [[ -z ${JOBMAN_LAB_CLUSTER:-} ]] || return 0
    case ${JOBMAN_TEST_CLUSTER:-} in
        lab) return 0 ;;
        own) own=${KUBECONFIG:-$HOME/.kube/config} whose=${KUBECONFIG:+KUBECONFIG} ;;
        '') of_the_lab "${KUBECONFIG:-}" || own=$KUBECONFIG whose=KUBECONFIG ;;
        *) cannot "JOBMAN_TEST_CLUSTER is lab or own, and not $JOBMAN_TEST_CLUSTER" ;;
    esac
    [[ -z ${JOBMAN_TEST_KUBECONFIG:-} ]] || own=$JOBMAN_TEST_KUBECONFIG whose=JOBMAN_TEST_KUBECONFIG
    [[ -z $own ]] || whose="the cluster of ${whose:+$whose (}$own${whose:+)}"
}

# of_the_lab FILE: whether it is none, or one that the lab wrote: scripts hand it on, and people look at the lab with it.
of_the_lab() {
    [[ -z $1 || $(realpath -m "$1") == "${cache%/*}"/kubernetes* ]]
}
