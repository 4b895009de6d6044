# Mostly this is its first attempt and goes well. Then what follows is all there is to do: bash reads a script as it
# goes, and ends before it has seen the rest. Whatever else happens goes on below, with the command under way if it is.
jobman_key=$jobman_task.${SLURM_ARRAY_TASK_ID:-0} jobman_heard= jobman_child=
jobman_log=$jobman_folder/log/$jobman_key jobman_out=$jobman_folder/out/$jobman_key
jobman_scratch=$jobman_scratch/jobman-$jobman_id-$jobman_key-1
# A signal that comes just before this shell waits for its command leaves it nothing to wait for.
for jobman_word in URG TERM USR1 USR2 WINCH; do
    trap "jobman_heard+=' $jobman_word' jobman_awaited=" "$jobman_word"
done
if [[ ! -e $jobman_folder/claimed/$jobman_task ]]; then
    set -C
    { echo "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}" >"$jobman_folder/claimed/$jobman_task"; } 2>/dev/null
    set +C
fi
jobman_tell() { # KIND KEY ATTEMPT CODE REASON NODES
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n' "${EPOCHREALTIME/,/.}" "$@" >>"$jobman_log"
}
if [[ ${EPOCHREALTIME:-} && ! ${SLURM_RESTART_COUNT:-} && $SLURM_JOB_NODELIST != *[,[]* ]] &&
    [[ ! -e $jobman_folder/ambiguous && ! -e $jobman_folder/cancelled && ! -e $jobman_folder/outcome/$jobman_task ]] &&
    [[ ! -e $jobman_out.out && -d $jobman_folder/ready ]] && jobman_enter &&
    LC_ALL=C mkdir -- "$jobman_scratch" 2>/dev/null; then
    set -m
    {
        jobman_tell started "$jobman_key" 1 '' '' "$SLURM_JOB_NODELIST"
        [[ ! $jobman_others ]] || : >"$jobman_folder/began/$jobman_key"
        jobman_run &
        jobman_child=$!
    } </dev/null >>"$jobman_out.out" 2>>"$jobman_out.err"
    set +m
    jobman_awaited=$jobman_child
    if [[ $jobman_child && ! $jobman_heard ]]; then
        wait "${jobman_awaited:-$$}" 2>/dev/null
        jobman_status=$?
        if [[ $jobman_status == 0 && ! $jobman_heard ]]; then
            kill -KILL -- "-$jobman_child" 2>/dev/null
            jobman_tell succeeded "$jobman_key" 1 0 '' "$SLURM_JOB_NODELIST"
            set -C
            # Of an array, whoever comes after it counts how its elements ended.
            ((jobman_replicas > 1)) || ! { echo "succeeded 0 $jobman_key" >"$jobman_folder/outcome/$jobman_task"; } 2>/dev/null ||
                jobman_tell task "$jobman_task" '' '' succeeded ''
            LC_ALL=C exec rm -rf -- "$jobman_scratch"
        fi
    fi
fi
