# What the settings say runs an image, with what it must know of this copy; then the command, in its container.
mode=$1 grace=$2 names=$3 given=$4 own=("${@:5:5}") count=${10}
shift 10
words=("${@:1:count}")
shift "$count"
name=${JOBMAN_SCRATCH##*/}
name=${name//[!a-zA-Z0-9_.-]/_}-$JOBMAN_RANK
stopped= interrupted= is_named= options=() lines= filled=()
printf -v newline "\n"
declare -A said=()

# The program itself, and this, need some names as they are outside, whatever they are inside.
for each in PATH HOME TMPDIR LD_LIBRARY_PATH LD_PRELOAD; do
    said[$each]=${!each-}
    if [[ ${own[0]} ]]; then export "$each=${own[0]}"; else unset -v "$each"; fi
    own=("${own[@]:1}")
done
# Variables of the document, of jobman and of the manager go inside; all others are of the machine, not of the image.
told="JOB_ID|JOB_NAME|TASK|REPLICA|REPLICAS|ATTEMPT|RANK|SIZE|NODE_RANK|NNODES|NODELIST|CORES|GPUS|SCRATCH|COORDINATOR"
for each in $(compgen -e); do
    [[ ! $each =~ ^(JOBMAN_($told|HOST_.*|PORT_.*)|(SLURM|FLUX|PMI|PMIX)_.*|.*_VISIBLE_DEVICES)$ ]] || names+=" $each"
done
if [[ $given ]]; then
    while IFS= read -r -d "" each; do names+=" ${each%%=*}"; done < <(cat "$given.before" "$given.behind")
fi
# No value stands in an argument, where all can read it.
for each in $(printf "%s\n" $names | sort -u); do
    if [[ ! ${said[$each]+set} ]]; then
        options+=(--env "$each")
    elif [[ ${said[$each]} != *"$newline"* ]]; then
        lines+="$each=${said[$each]}$newline"
        export "APPTAINERENV_$each=${said[$each]}" "SINGULARITYENV_$each=${said[$each]}"
    fi
done
if [[ $lines ]]; then
    exec {variables}< <(printf "%s" "$lines")
    options+=(--env-file "/dev/fd/$variables")
fi

for each in "${words[@]}"; do
    case $each in
    "{environment}") filled+=("${options[@]}") ;;
    "{init}")
        # Then a signal ends also what does not care for signals.
        [[ ${words[0]##*/} != docker && ! -x /usr/libexec/podman/catatonit && ! -x /usr/bin/catatonit ]] ||
            filled+=(--init)
        ;;
    *)
        [[ $each != *"{name}"* ]] || is_named=1
        each=${each//"{cwd}"/"$PWD"}
        each=${each//"{scratch}"/"$JOBMAN_SCRATCH"}
        each=${each//"{name}"/"$name"}
        filled+=("$each")
        ;;
    esac
done
program=${words[0]}

# The script says of it that it could not be started, and why.
fails() { printf "%s\n" "$1" >"$JOBMAN_SCRATCH/.launch.$JOBMAN_RANK"; }

if ! type -P -- "$program" >/dev/null; then
    fails "there is no program $program on $(uname -n)"
    echo "jobman: there is no program $program on $(uname -n)" >&2
    exit 127
fi
if [[ $mode == inside && $is_named ]]; then exec "$program" exec "$name" "$@"; fi
if [[ ! $is_named ]]; then trap "interrupted=1" TERM; else trap stop TERM; fi
trap "interrupted=1" HUP INT QUIT USR1 USR2 ALRM PIPE XCPU XFSZ VTALRM PROF IO PWR

# The program has the same signal and passes it on. It is not what runs, so to kill it would not be enough.
stop() {
    interrupted=1
    [[ ! $stopped ]] || return 0
    stopped=1
    { sleep "$grace" && "$program" kill "$name"; } >/dev/null 2>&1 &
}

# Until nothing of it is left, and that was seen: whoever is killed while looking has seen nothing.
clear() {
    local tries left
    for ((tries = 0; tries < 100; tries++)); do
        "$program" kill "$name"
        "$program" rm --force "$name"
        ! left=$("$program" ps --all --quiet --filter "name=^$name\$") || [[ $left ]] || return 0
        sleep 0.1
    done
    return 1
} >/dev/null 2>&1

# Whoever kills or freezes this has not reached the container. What watches is nobody's child, and sees to both.
watch() {
    local state paused=
    while read -r _ _ state _ <"/proc/$1/stat" && [[ $state != Z ]]; do
        if [[ $state == T && ! $paused ]]; then
            "$program" pause "$name" && paused=1
        elif [[ $state != T && $paused ]]; then
            "$program" unpause "$name"
            paused=
        fi
        sleep 0.5
    done
    [[ ! $paused ]] || "$program" unpause "$name"
    clear
}
guard=
if [[ $is_named ]]; then
    export -f clear watch
    guard=$(program=$program name=$name setsid /bin/bash -c "watch $$" >/dev/null 2>&1 & echo "$!")
fi

"${filled[@]}" "$@" &
client=$! last=
while :; do
    interrupted=
    wait "$client"
    code=$?
    [[ $interrupted ]] || break
    last=$code
done
[[ $code != 127 || ! $last ]] || code=$last

if [[ $is_named ]]; then
    if [[ ! $stopped && $code != @(125|137) ]] || clear; then kill -KILL -- "-$guard" 2>/dev/null; fi
fi
# Its own words that it could not begin, and not those of the command.
if [[ $code == @(125|126|127|255) && -f /dev/fd/2 ]]; then
    begins="OCI runtime|runc|crun|workdir|container process"
    while IFS= read -r line; do
        [[ ! $code:$line =~ ^(125:Error:|12[67]:Error:.*($begins)|12[567]:docker:|255:FATAL:) ]] || fails "${line#*: }"
    done < <(tail -n 3 /dev/fd/2)
fi
exit "$code"
