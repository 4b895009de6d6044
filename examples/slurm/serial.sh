#!/bin/bash
# One program with several threads: no step, one node, a time limit.
#SBATCH --job-name=serial
#SBATCH --cpus-per-task=2
#SBATCH --mem-per-cpu=100M
#SBATCH --time=5

echo "$SLURM_JOB_NAME has $SLURM_CPUS_PER_TASK cores and the arguments: $*"
for number in 1 2 3; do
    echo "step $number of $(basename "$PWD")"
done
