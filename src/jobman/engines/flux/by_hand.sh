# Options that a script has in its head; each line was written as a shell reads it.
head_of() { # SCRIPT
    local lines
    lines=$(sed -n '/^#/!q; s/^#flux: //p' "$1")
    eval "HEAD=(${lines//$'\n'/ })"
}

# A script that has steps or tasks gets an instance of its own; others are plain jobs. Prints ID,..., each with
# @URGENCY where that is not the usual one.
submit_to_flux() { # submit|batch REPLICAS AT-ONCE OPTION...
    local kind=$1 count=$2 at_once=$3 word id element options=() mine title='' urgency='' ids=()
    shift 3
    head_of "$script"
    for word in "${HEAD[@]}"; do
        case $word in
        --job-name=*) title=${word#*=} ;;
        --urgency=*) urgency=@${word#*=} ;;
        esac
    done
    [[ $kind == batch ]] || options=("${HEAD[@]}")
    for word; do
        case $word in
        after*:*) for id in ${word#*:}; do options+=("--dependency=${word%%:*}:$id"); done ;;
        *) options+=("$word") ;;
        esac
    done
    for ((element = 0; element < count; element++)); do
        mine=("${options[@]}")
        if ((count > 1)); then mine+=("--job-name=${title% jobman:*}[$element/$count] jobman:${title##* jobman:}"); fi
        if ((at_once && element >= at_once)); then mine+=("--dependency=afterany:${ids[element - at_once]%@*}"); fi
        id=$(flux "$kind" "${mine[@]}" "$script" "$element") || return
        ids+=("$id$urgency")
    done
    (IFS=,; echo "${ids[*]}")
}

plain_ids() { local all=("$@"); all=(${all[*]//,/ }); echo "${all[@]%@*}"; }
release_all() {
    local id urgency
    for id in "$@"; do
        urgency=default
        [[ $id != *@* ]] || urgency=${id#*@}
        flux job urgency "${id%@*}" "$urgency"
    done
}
