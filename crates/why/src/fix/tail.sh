
# What calls the parts, and what takes them back.

# All of it or nothing.
apply() {
    begin "$1" "$(date +%Y%m%d-%H%M%S)-$$"
    is_whole=
    "$part"
    "note_$part"
    is_whole=yes
    echo "done; the way back: sh $0 undo-$part $run"
}

undo() {
    begin "$1" "$2"
    "undo_$part"
    if [ -z "$restored$failed" ]; then
        echo "no file is left of a run $run" >&2
        exit 1
    fi
    [ -z "$restored" ] || "reload_$part"
    [ -z "$failed" ]
}

# begin PART RUN
begin() {
    part=$1 run=$2
    suffix=.before-sshoal-$run
    restored= failed= locked= is_whole=yes
    trap leave EXIT
    lock
}

# Lets no other run change the same files until this one has ended: each would take the other's for what was there before. A folder is made
# in one step, by one of them.
lock() {
    folder=/run
    [ -d "$folder" ] || folder=/var/run
    case $part in
    here) lock=$HOME/.sshoal-fix.lock ;;
    *) lock=$folder/sshoal-fix.lock ;;
    esac
    # No signal comes between what is made and what is known of it.
    trap '' HUP INT TERM
    why=$(mkdir -- "$lock" 2>&1) && locked=yes
    trap 'exit 1' HUP INT TERM
    if [ -n "$locked" ]; then
        printf '%s\n' "$run" >"$lock/run"
        return
    fi
    if [ -d "$lock" ]; then
        other=$(cat "$lock/run" 2>/dev/null) || other=
        echo "another run${other:+, $other,} is at work, and nothing is changed: wait for its end. If it was killed: rm -r $lock" >&2
        [ -z "$other" ] || echo "What it had changed by then its script puts back: sh $0 undo-$part $other" >&2
    else
        echo "$why: nothing is changed" >&2
    fi
    exit 1
}

# What was not brought to its end is put back, and the next run let in, whatever becomes of either.
leave() {
    set +e
    trap '' HUP INT TERM
    if [ -z "$is_whole" ]; then
        "undo_$part"
        [ -n "$failed" ] || echo 'nothing is changed: what was, is put back' >&2
    fi
    [ -z "$locked" ] || rm -r -- "$lock"
}

case $#:${1-} in
    1:here | 1:host) apply "$1" ;;
    2:undo-here | 2:undo-host) undo "${1#undo-}" "$2" ;;
    *)
        echo "usage: sh $0 here|host, or undo-here|undo-host RUN" >&2
        exit 64
        ;;
esac
