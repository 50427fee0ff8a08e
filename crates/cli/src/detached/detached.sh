# A command that outlives its connection: begins it, follows it, tells how it is, takes its folder away. Read by
# /bin/sh -s RUN NUMBER told|mute first|again OUT ERR [COMMAND] behind a line that sets task. `again`: who asks knows that the command was
# begun here.
#
# The folder, for its owner alone, is ~/.cache/sshoal/RUN.NUMBER@HOST, or /tmp/sshoal-UID/RUN.NUMBER@HOST where there is no home to write
# to. Hosts may share a home, and a run may name one of them several times, NUMBER by NUMBER, so that each has one of its own:
#
#   process    number and start (in clock ticks since boot) of the shell beside the command, which leads its session
#   out, err   what the command has written
#   status     its exit status, once it has ended
#   collected  once all of it was sent to somebody

mask=$(umask)
umask 077
run=$1 number=$2 announce=$3 turn=$4 out=$5 err=$6 command=$7
name=$run.$number@$(uname -n)
# Read by something else that was not told what to do.
[ -n "$err" ] || exit 69

# It is this that answers, and what comes now is the command's. Who asks knows that by these words, and shows them to nobody. A
# command that begins has its folder before: whoever has heard them never has it begin a second time.
announce() {
    if [ "$announce" = told ]; then
        printf 'sshoal-%s-%s;' "$run" "$number"
        printf 'sshoal-%s-%s;' "$run" "$number" >&2
    fi
    announce=done
}

# Statuses of our own, as in sysexits.h: no such run, no status will come, no folder can be made.
EX_UNAVAILABLE=69 EX_SOFTWARE=70 EX_CANTCREAT=73

fail() {
    status=$1
    shift
    announce
    printf 'sshoal: %s\n' "$*" >&2
    exit "$status"
}

# A folder of ours, and no link of somebody else's to one.
is_ours() {
    [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]
}

find_folder() {
    for base in "$HOME/.cache/sshoal" "/tmp/sshoal-$(id -u)"; do
        folder=$base/$name
        is_ours "$base" && is_ours "$folder" && return
    done
    return 1
}

# Fails if the command has begun: of several that try, one makes the folder.
make_folder() {
    mkdir -p "$HOME/.cache" 2>/dev/null
    for base in "$HOME/.cache/sshoal" "/tmp/sshoal-$(id -u)"; do
        mkdir "$base" 2>/dev/null
        is_ours "$base" && chmod 700 "$base" || continue
        folder=$base/$name
        mkdir "$folder" 2>/dev/null && return
        is_ours "$folder" && return 1
    done
    fail $EX_CANTCREAT "neither ~/.cache nor /tmp takes a folder for the command: it was not started"
}

# Takes away what was collected more than an hour ago: whoever did has it by now.
sweep() {
    find "$base" -name collected -mmin +60 2>/dev/null | while IFS= read -r mark; do
        rm -rf "${mark%/collected}"
    done
}

# What stays beside the command: $1 the folder, $2 the command, $3 the login's umask. A signal to its group is the command's, not its own.
beside='
trap : HUP INT TERM
if [ -r /proc/$$/stat ]; then
    stat=$(cat /proc/$$/stat)
    set -- "$1" "$2" "$3" ${stat##*\) }
    start=${23}
fi
echo "$$ $start" >"$1/process.new" && mv "$1/process.new" "$1/process" || exit
(umask "$3" && exec "${SHELL:-/bin/sh}" -c "$2") </dev/null >"$1/out" 2>"$1/err"
echo $? >"$1/status.new"
mv "$1/status.new" "$1/status"
'

begin() {
    find_folder && return
    make_folder || return 0
    announce
    : >"$folder/out" && : >"$folder/err" || fail $EX_CANTCREAT "$folder cannot be written: the command was not started"
    way=
    command -v setsid >/dev/null 2>&1 && way=setsid
    (
        trap '' HUP
        SSHOAL_RUN=$run.$number. $way /bin/sh -c "$beside" sh "$folder" "$command" "$mask" </dev/null >/dev/null 2>&1 &
    )
    sweep
}

# Waits until the command is under way.
await_process() {
    tries=0
    until [ -s "$folder/process" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || fail $EX_SOFTWARE "it is not known whether the command began: see $folder"
        nap 0.1
    done
    read -r process start <"$folder/process"
}

nap() {
    sleep "$1" 2>/dev/null || sleep 1
}

is_alive() {
    [ -r "/proc/$process/stat" ] || { [ ! -d /proc/self ] && kill -0 "$process" 2>/dev/null; } || return 1
    [ -n "$start" ] || return 0
    stat=$(cat "/proc/$process/stat" 2>/dev/null)
    set -- ${stat##*\) }
    case $1 in Z | X) return 1 ;; esac
    [ "${20}" = "$start" ]
}

# How the command is: running, ended or lost.
look() {
    state=running
    is_alive || state=lost
    # It may have ended between two looks.
    [ ! -s "$folder/status" ] || state=ended
}

size() {
    echo $(($(wc -c <"$folder/$1")))
}

# Writes what file $1 has from octet $2 up to $3.
part() {
    [ "$3" -le "$2" ] || tail -c "+$(($2 + 1))" "$folder/$1" | head -c $(($3 - $2))
}

follow() {
    await_process
    while :; do
        # Nobody reads any more: another one may go on from where this one was.
        [ -d "/proc/$PPID" ] || kill -0 "$PPID" 2>/dev/null || exit $EX_SOFTWARE
        look
        to=$(size out)
        part out "$out" "$to" || exit $EX_SOFTWARE
        out=$to
        to=$(size err)
        part err "$err" "$to" >&2 || exit $EX_SOFTWARE
        err=$to
        [ "$state" = running ] || break
        nap 0.2
    done
    [ "$state" = ended ] ||
        fail $EX_SOFTWARE "the command is gone and has left no status: it was killed, or the host was started anew"
    : >"$folder/collected"
    exit "$(cat "$folder/status")"
}

tell() {
    await_process
    look
    written="$(size out) octets of output, $(size err) of errors"
    case $state in
    running) echo "$run running: process $process, $written" ;;
    ended) echo "$run ended with status $(cat "$folder/status"): $written" ;;
    lost) echo "$run lost: gone without a status, $written" ;;
    esac
}

case $task in begin | survive) ;; *)
    announce
    find_folder || fail $EX_UNAVAILABLE "run $run is not on this host: it never began here, or was collected and taken away"
    ;;
esac

case $task in
begin)
    begin
    announce
    tell
    exit
    ;;
survive)
    if [ "$turn" = again ]; then
        find_folder ||
            fail $EX_UNAVAILABLE "the command was begun here, and its folder is gone, or the host has another name now: how it ended is not known"
    else
        begin
    fi
    announce
    follow
    ;;
follow)
    follow
    ;;
status)
    tell
    exit
    ;;
remove)
    await_process
    look
    [ "$state" != running ] || fail $EX_SOFTWARE "it still runs: end it first (--kill)"
    rm -rf "$folder"
    exit
    ;;
esac
