#!/bin/bash
# A script that starts steps of its own on one node, one after the other.
#SBATCH --job-name=steps
#SBATCH --nodes=1 --ntasks=2
#SBATCH --time=0-00:05

srun bash -c 'echo "rank $SLURM_PROCID of $SLURM_NTASKS prepares" > "part-$SLURM_PROCID.txt"'
cat part-0.txt part-1.txt
srun -n 1 bash -c 'echo "$SLURM_NTASKS copy cleans up" && rm part-*.txt'
