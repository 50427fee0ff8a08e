
# What calls the parts, and what takes them back.

# All of it or nothing.
apply() {
    part=$1
    run=$(date +%Y%m%d-%H%M%S)-$$
    suffix=.before-sshoal-$run
    restored= failed=
    trap 'exit 1' HUP INT TERM
    trap 'give_up "$part"' EXIT
    "$part"
    "note_$part"
    trap - EXIT
    echo "done; the way back: sh $0 undo-$part $run"
}

give_up() {
    "undo_$1"
    [ -n "$failed" ] || echo 'nothing is changed: what was, is put back' >&2
}

undo() {
    suffix=.before-sshoal-$2
    restored= failed=
    "undo_$1"
    if [ -z "$restored$failed" ]; then
        echo "no file is left of a run $2" >&2
        exit 1
    fi
    [ -z "$restored" ] || "reload_$1"
    [ -z "$failed" ]
}

case $#:${1-} in
    1:here | 1:host) apply "$1" ;;
    2:undo-here | 2:undo-host) undo "${1#undo-}" "$2" ;;
    *)
        echo "usage: sh $0 here|host, or undo-here|undo-host RUN" >&2
        exit 64
        ;;
esac
