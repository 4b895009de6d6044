#!/bin/bash
# A parallel program: what prepares, then one srun. It becomes a task with two copies.
#SBATCH --job-name=copies
#SBATCH --ntasks=2
#SBATCH --time=5

export GREETING="hello from"
srun bash -c 'echo "$GREETING rank $SLURM_PROCID of $SLURM_NTASKS"'
