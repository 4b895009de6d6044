#!/bin/sh
# Stands in for srun where Slurm is not: starts the copies of a step here, and ends with the worst of their codes.
set -u
count='' output='' error='' folder='' label='' cores=${SLURM_CPUS_PER_TASK:-}

refuse() { echo "srun: $1; outside Slurm it only starts copies of a command on one node" >&2; exit 2; }
value() { [ $# -ge 2 ] || refuse "the option $1 needs a value"; }

while [ $# -gt 0 ]; do
    case $1 in
        --*=*) option=${1%%=*} given=${1#*=}; shift; set -- "$option" "$given" "$@"; joined=1 ;;
        -[nNcoeiDtJpAwxmCG]?*) given=${1#-?} option=${1%"$given"}; shift; set -- "$option" "$given" "$@"; joined=1 ;;
        *) joined='' ;;
    esac
    case $1 in
        --) shift; break ;;
        -n|--ntasks) value "$@"; count=$2; shift 2 ;;
        -c|--cpus-per-task) value "$@"; cores=$2; shift 2 ;;
        -o|--output) value "$@"; output=$2; shift 2 ;;
        -e|--error) value "$@"; error=$2; shift 2 ;;
        -D|--chdir) value "$@"; folder=$2; shift 2 ;;
        --ntasks-per-node|--tasks-per-node) value "$@"; count=${count:-$2}; shift 2 ;;
        -l|--label) label=1; shift ;;
        --export) value "$@"; [ "$2" = ALL ] || refuse "--export=$2 is not done"; shift 2 ;;
        -i|--input) value "$@"; [ "$2" = none ] || refuse "$1 $2 is not done"; shift 2 ;;
        # How Slurm would place, bind and limit a step has no meaning for processes side by side.
        -N|--nodes|-t|--time|-J|--job-name|-p|--partition|-A|--account|-w|--nodelist|-x|--exclude|-m|--distribution|\
        -C|--constraint|-G|--gpus|--gpus-per-task|--gpus-per-node|--gres|--mem|--mem-per-cpu|--mem-per-gpu|--cpu-bind|\
        --gpu-bind|--mem-bind|--mpi|--hint|--cpus-per-gpu|--threads-per-core|--ntasks-per-socket|--qos|\
        --open-mode|--comment|--kill-on-bad-exit|--wait|--accel-bind|--network)
            if [ -n "$joined" ]; then shift 2
            elif [ "$1" = --kill-on-bad-exit ]; then shift
            else value "$@"; shift 2; fi ;;
        --exclusive) shift; [ -z "$joined" ] || shift ;;
        -u|--unbuffered|-K|-Q|--quiet|-v|--verbose|--exact|--overlap|-s|--oversubscribe|-O|--overcommit|-k|--no-kill|\
        --contiguous|--spread-job|--use-min-nodes|-E|--preserve-env|-H|--hold|-Z|--no-allocate|--pty)
            [ -z "$joined" ] || refuse "the option $1 takes no value"; shift ;;
        -?*) refuse "the option $1 is not known" ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || refuse "there is no command"
count=${count:-${SLURM_NTASKS:-1}}
case $count in ''|*[!0-9]*|0) refuse "'$count' is no number of copies" ;; esac
[ -z "$folder" ] || cd "$folder" || exit 1

export SLURM_NTASKS="$count" SLURM_NPROCS="$count" SLURM_STEP_NUM_TASKS="$count" SLURM_NODEID=0 SLURM_STEP_ID=0
export SLURM_STEPID=0
[ -z "$cores" ] || export SLURM_CPUS_PER_TASK="$cores"
[ -n "$error" ] || error=$output

# The name of a file for one copy: %t is its number.
name() { printf '%s\n' "$1" | sed "s/%[0-9]*[tn]/$2/g; s/%[0-9]*[jJA]/${SLURM_JOB_ID:-0}/g; s/%%/%/g"; }

copy() {
    export SLURM_PROCID="$1" SLURM_LOCALID="$1"
    rank=$1
    shift
    [ -z "$output" ] || exec >>"$(name "$output" "$rank")"
    [ -z "$error" ] || exec 2>>"$(name "$error" "$rank")"
    exec "$@"
}

if [ "$count" = 1 ] && [ -z "$label" ]; then
    copy 0 "$@"
fi
pids='' rank=0 worst=0
stop() { for pid in $pids; do kill -"$1" "$pid" 2>/dev/null; done; }
trap 'stop TERM' TERM
trap 'stop INT' INT
trap 'stop USR1' USR1
trap 'stop USR2' USR2
while [ "$rank" -lt "$count" ]; do
    if [ -n "$label" ]; then
        # The code of a copy is lost in a pipe, so it goes around it.
        ( { code=$({ { (copy "$rank" "$@") 3>&- 4>&-; echo $? >&3; } | sed "s/^/$rank: /" >&4 4>&- 3>&-; } 3>&1); } 4>&1
          exit "$code" ) </dev/null &
    else
        ( copy "$rank" "$@" ) </dev/null &
    fi
    pids="$pids $!"
    rank=$((rank + 1))
done
for pid in $pids; do
    wait "$pid"
    code=$?
    # A signal that was passed on interrupts the waiting, and the copy may still be at its end.
    while [ "$code" -gt 128 ] && kill -0 "$pid" 2>/dev/null; do
        wait "$pid"
        code=$?
    done
    [ "$code" -le "$worst" ] || worst=$code
done
exit "$worst"
