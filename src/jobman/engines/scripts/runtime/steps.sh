# -- files that are there before the command -------------------------------------------------------------------

# All of them travel as one archive to every node, and are checked by its digest there.
bring_files() {
    local staged=() archive='' sent='' digest='' folder=$J/out/$KEY/$ATTEMPT
    [[ ! $(declare -F "staged_$U") ]] || "staged_$U"
    if ((${#staged[@]})); then
        archive=$(mktemp "${TMPDIR:-/tmp}/jobman.XXXXXXXX") || { stage_fails "there is no room for a copy" && return 1; }
        if ! pack_files; then
            rm -f "$archive"
            return 1
        fi
        digest=$(sha256sum <"$archive")
    fi
    if ((NNODES == 1)); then
        SAYS=$( (bring_here "$digest") 2>&1 <"${archive:-/dev/null}")
    else
        [[ ! $archive ]] || ! send "$archive" || sent=$archive
        # What the manager has not sent ahead is what the step reads.
        SAYS=$("${everywhere[@]}" bash -c "$(program bring_here "$digest" "$sent")" 2>&1 \
            <"$([[ $archive && ! $sent ]] && echo "$archive" || echo /dev/null)")
    fi
    STATUS=$?
    [[ ! $sent ]] || forget_sent "$archive"
    [[ ! $archive ]] || rm -f "$archive"
    ((STATUS == 0)) || stage_fails "${SAYS%%$'\n'*}"
}

stage_fails() {
    REASON=stage-failed CODE='' SAYS=$1
    return 1
}

pack_files() {
    local number=0 path bundle
    bundle=$(mktemp -d "${TMPDIR:-/tmp}/jobman.XXXXXXXX")
    for path in "${staged[@]}"; do
        [[ $path == /* ]] || path=${cwd:-$PWD}/$path
        if ! [[ -e $path ]]; then
            rm -rf "$bundle"
            stage_fails "could not stage $path: it does not exist"
            return 1
        fi
        ln -s "$path" "$bundle/$number"
        ((++number))
    done
    # The links to what is staged are followed, and no others.
    if ! (cd "$bundle" && for path in *; do
        target=$(readlink "$path") && tar -C "$(dirname "$target")" --transform "s,^[^/]*,$path," -rf "$archive.tar" -- "$(basename "$target")" || exit
    done && gzip -c1 "$archive.tar" >"$archive"); then
        rm -rf "$bundle" "$archive.tar"
        stage_fails "could not pack what is staged"
        return 1
    fi
    rm -rf "$bundle" "$archive.tar"
}

bring_here() { # DIGEST SENT
    STAGED=0
    cd "${cwd:-.}" 2>/dev/null || { echo "the working directory $cwd is not there" && return 1; }
    if [[ $1 ]]; then
        BUNDLE=$(mktemp -d "${TMPDIR:-/tmp}/jobman.XXXXXXXX") || return
        if [[ ${2:-} ]]; then take_sent "$2" "$BUNDLE/archive"; else cat >"$BUNDLE/archive"; fi
        if [[ $(sha256sum <"$BUNDLE/archive") != "$1" ]] || ! tar -C "$BUNDLE" -xzf "$BUNDLE/archive"; then
            echo "what arrived is not what was sent"
            return 1
        fi
    fi
    "steps_$U"
    local status=$?
    [[ ! $1 ]] || rm -rf "$BUNDLE"
    return "$status"
}

stage_file() { # PATH TO
    local from=$BUNDLE/$STAGED
    ((++STAGED))
    [[ ! $1 -ef $2 ]] || return 0
    if [[ -d $from ]]; then
        mkdir -p -- "$2" && cp -RPp -- "$from/." "$2/"
    else
        mkdir -p -- "$(dirname -- "$2")" && cp -p -- "$from" "$2.$BASHPID.new" && mv -f -- "$2.$BASHPID.new" "$2"
    fi || { echo "could not stage $1 as $2" && return 1; }
}

# Beside its place first, so that nobody ever sees a half of it.
write_file() { # PATH MODE CONTENT
    mkdir -p -- "$(dirname -- "$1")" && printf %s "$3" >"$1.$BASHPID.new" && chmod "$2" -- "$1.$BASHPID.new" &&
        mv -f -- "$1.$BASHPID.new" "$1" || { echo "could not write $1" && return 1; }
}
