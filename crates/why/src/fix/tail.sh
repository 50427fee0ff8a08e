
# All of it or nothing.
apply() {
    part=$1
    run=$(date +%Y%m%d-%H%M%S)-$$
    suffix=.before-sshoal-$run
    trap 'exit 1' HUP INT TERM
    trap 'echo "nothing is changed: what was, is put back" >&2; "undo_$part"' EXIT
    "$part"
    trap - EXIT
    echo "done; the way back: sh $0 undo-$part $run"
}

undo() {
    suffix=.before-sshoal-$2
    restored=
    "undo_$1"
    if [ -z "$restored" ]; then
        echo "no file is left of a run $2" >&2
        exit 1
    fi
    "reload_$1"
}

case $#:${1-} in
    1:here | 1:host) apply "$1" ;;
    2:undo-here | 2:undo-host) undo "${1#undo-}" "$2" ;;
    *)
        echo "usage: sh $0 here|host, or undo-here|undo-host RUN" >&2
        exit 64
        ;;
esac
