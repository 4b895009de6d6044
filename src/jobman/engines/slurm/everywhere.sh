# -- all nodes at once ---------------------------------------------------------------------------------------

everywhere=(srun --overlap --mem=0 --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1)

# Slurm hands a file on from node to node. Where it cannot, what is sent goes through the step that takes it.
send() { # ARCHIVE
    sbcast --force "$1" "$1.sent" 2>/dev/null && return
    forget_sent "$1"
    return 1
}

take_sent() { # ARCHIVE TO
    cat "$1.sent" >"$2"
}

# Nodes may have one folder for it between them: none takes it away before all of them have read it.
forget_sent() { # ARCHIVE
    "${everywhere[@]}" rm -f "$1.sent" 2>/dev/null
}
