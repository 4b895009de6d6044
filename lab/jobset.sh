# shellcheck shell=bash
# shellcheck disable=SC2154 # lab/kubernetes, which sources this, sets what is not set here
# Sourced by lab/kubernetes. JobSet: a process of the machine and not a pod, which the API server asks on loopback
# before it takes a JobSet or a pod of one. As with policies, it can go and come without the others taking notice.

jobset=0.10.1
manifests=$store/jobset-$jobset
api=jobset.x-k8s.io/v1alpha2
hooks=https://127.0.0.1:${ports}44

jobset_built() {
    [[ -x $bin/jobset-$jobset && -s $manifests/webhooks.yaml ]]
}

build_jobset() {
    jobset_built || (
        cd "$here/go/jobset" || exit
        CGO_ENABLED=0 go build -mod=readonly -trimpath \
            -ldflags "-s -w -X sigs.k8s.io/jobset/pkg/version.GitVersion=v$jobset" \
            -o "$bin/jobset-$jobset" sigs.k8s.io/jobset &&
            copy_manifests "$(go list -mod=readonly -m -f '{{.Dir}}' sigs.k8s.io/jobset)/config/components"
    )
}

copy_manifests() {
    mkdir -p "$manifests" &&
        cat "$1/crd/bases/jobset.x-k8s.io_jobsets.yaml" >"$manifests/kind.yaml" &&
        cat "$1/rbac/role.yaml" >"$manifests/role.yaml" &&
        cat "$1/webhook/manifests.yaml" >"$manifests/webhooks.yaml"
}

start_jobset() {
    ((${#nodes[@]})) || return 0
    halt TERM jobset
    jobset_key
    jobset_settings >"$cache/jobset.yaml"
    jobset_objects | kubectl apply --server-side --force-conflicts --validate=false -f - >/dev/null || return 0
    kubectl create clusterrolebinding lab-jobset --clusterrole=jobset-manager-role --user=jobset >/dev/null 2>&1 || true
    within 10 kubectl get --raw "/apis/$api" >/dev/null 2>&1 || return 0
    launch jobset "$bin/jobset-$jobset" --kubeconfig="$pki/jobset.conf" --config="$cache/jobset.yaml" \
        --zap-log-level=info
    within 15 jobset_answers || true
}

# By a certificate it is known to an API server that runs already, too, which has read the tokens. It shows the same
# one to those who ask it.
jobset_key() {
    [[ ! -s $pki/jobset/tls.crt ]] || return 0
    (
        cd "$pki" || exit
        umask 077
        mkdir -p jobset
        certificate jobset/tls /CN=jobset subjectAltName=IP:127.0.0.1
        access jobset "client-certificate: \"$pki/jobset/tls.crt\", client-key: \"$pki/jobset/tls.key\"" >jobset.conf
    ) 2>/dev/null
}

jobset_settings() {
    cat <<CONF
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: ${ports}44, certDir: "$pki/jobset"}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
CONF
}

# As its own installation has them, with names that say whose they are, and no questions about pods of others; only
# that its webhooks are not behind a service.
jobset_objects() {
    local of_a_set='{matchExpressions: [{key: jobset.sigs.k8s.io/jobset-name, operator: Exists}]}'
    cat "$manifests/kind.yaml"
    sed 's/^  name: manager-role$/  name: jobset-manager-role/' "$manifests/role.yaml"
    sed -e '/^ *service:$/d; /^ *name: webhook-service$/d; /^ *namespace: system$/d' \
        -e 's/^  name: \(.*-webhook-configuration\)$/  name: jobset-\1/' \
        -e "s|^  name: .pod.kb.io$|&\n  objectSelector: $of_a_set|" \
        -e "s|^      path: \(/.*\)$|      url: $hooks\1\n      caBundle: $(base64 -w 0 "$pki/ca.crt")|" \
        "$manifests/webhooks.yaml"
}

jobset_runs() {
    ((${#nodes[@]} == 0)) || ! gone jobset
}

# Whoever makes a JobSet now is answered by it: a wrong one is refused.
jobset_answers() {
    local wrong='"kind": "JobSet", "metadata": {"name": "wrong"}, "spec": {"managedBy": "nobody"}'
    ((${#nodes[@]} == 0)) || grep -q 'denied the request' <<<"$(
        kubectl create --raw "/apis/$api/namespaces/default/jobsets?dryRun=All" -f - \
            <<<"{\"apiVersion\": \"$api\", $wrong}" 2>&1
    )"
}
