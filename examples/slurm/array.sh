#!/bin/bash
# The same script for several numbers, two of them at once.
#SBATCH -J array -a 1-5:2,10%2
#SBATCH -n 1 -t 00:05:00   # five minutes are plenty

echo "number $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, from $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX"
