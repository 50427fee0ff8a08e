# Ends what a command of this connection has left running on this host, and says whether it is gone. Read by /bin/sh -s behind
# lines that set:
#
#   grace     seconds from SIGTERM to SIGKILL
#   told      "group" if the server has sent SIGTERM to the command's process group already
#   sudo      "yes" if the command was run by sudo, with password if that wants one
#   run       the name of a run whose command outlives its connection, or nothing
#   mark      what the answer begins with
#
# The processes are found without the command's help: sshd runs each session as a child of the process that has the connection,
# which is our ancestor; and what was started in a session has SSH_CONNECTION in its environment, which no other has. All
# descendants of those belong to them, and all of their sessions (setsid(2)), as far as those are not sshd's own or ours; and where logind
# has given the login a control group of its own (session-N.scope), all that is in it.
#
# What has cut all of these ties is not found. The last line of the output is the answer, behind the mark: gone, killed, left
# PROCESSES, foreign PROCESSES, doubt PROCESSES, hidden, unknown or blind (script.rs).

LC_ALL=C
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin
newline='
'
exec 2>/dev/null
set -f

answer() {
    echo "$mark$*"
    case $1 in gone | killed) exit 0 ;; esac
    exit 1
}

[ -r /proc/self/stat ] || answer blind

# Splits a line of /proc/PID/stat (proc_pid_stat(5)). The name may hold anything but is in parentheses.
parse() {
    pid=${1%% *}
    comm=${1#*\(}
    comm=${comm%\) *}
    set -- ${1##*\) }
    state=$1 parent=$2 group=$3 session=$4 start=${20}
}

read_stat() {
    stat=$(cat "/proc/$1/stat") && [ -n "$stat" ] && parse "$stat"
}

# The process that has the connection, and which of its children we come from.
connection=
read_stat $$ && own_session=$session
branch=$$ at=$PPID servers=' '
while [ "$at" -gt 1 ] && read_stat "$at"; do
    case $comm in
    sshd* | dropbear*)
        servers="$servers$at "
        [ -n "$connection" ] || connection=$at connection_session=$session since=$start
        ;;
    *) [ -n "$connection" ] || branch=$at ;;
    esac
    at=$parent
done
[ -n "$connection" ] || answer unknown
# A server that makes no sessions has one for all.
[ "$own_session" = "$connection_session" ] && own_session=none
# What is older than this connection is of another one, and where no addresses are known all have the same words.
connected=$since
case $SSH_CONNECTION in UNKNOWN*) SSH_CONNECTION= ;; esac
# Such a command may have been begun by an earlier connection.
[ -z "$run" ] || since=0

# What was found so far, as " pid:start "; sessions as " session ". What is none of them need not be looked at again.
found=' ' sessions=' ' others=' ' asked=' ' groups= foreign= doubtful= uses_sudo=$sudo
scope=$(cat "/proc/$$/cgroup")
case $scope in *session-*.scope*) ;; *) scope= ;; esac
user=$(id -u)

belongs() {
    case $found in *" $pid:$start "*) return 0 ;; esac
    case $sessions in *" $session "*) return 0 ;; esac
    case $living in *" $parent "*) return 0 ;; esac
    [ "$parent" = "$connection" ] && return 0
    case $others in *" $pid:$start "*) return 1 ;; esac
    others="$others$pid:$start "
    [ -n "$scope" ] && [ "$(cat "/proc/$pid/cgroup")" = "$scope" ] && return 0
    if [ ! -r "/proc/$pid/environ" ]; then
        # A sudo of this user's (its real user), left by a shell that the signal has ended: of this connection or of another one.
        [ -d "/proc/$session" ] && return 1
        case $(cat "/proc/$pid/status") in
        *"Uid:	$user	$user	"*) ;;
        *"Uid:	$user	"*) doubtful="$doubtful $pid" ;;
        esac
        return 1
    fi
    environ=$(cat "/proc/$pid/environ")
    if [ -n "$run" ]; then
        case $environ in *"SSHOAL_RUN=$run"*) return 0 ;; esac
    fi
    [ -n "$SSH_CONNECTION" ] && [ "$start" -ge "$connected" ] || return 1
    case $environ in
    *"SSH_CONNECTION=$SSH_CONNECTION"[0-9]*) return 1 ;;
    *"SSH_CONNECTION=$SSH_CONNECTION"*) return 0 ;;
    esac
    return 1
}

# Sets living to what is there of the command, as " pid ", and left to the same with names.
look() {
    all=$(set +f && cat /proc/[0-9]*/stat)
    IFS=$newline
    set -- $all
    unset IFS
    candidates= part=
    for line; do
        line=$part$line part=
        case $line in
        *') '[A-Za-z]' '*) ;;
        *)
            # A name with an end of line in it.
            part="$line "
            continue
            ;;
        esac
        parse "$line"
        case $state in Z | X) continue ;; esac
        [ "$start" -lt "$since" ] && continue
        [ "$session" = "$own_session" ] && continue
        case $pid in "$$" | "$branch") continue ;; esac
        case $servers in *" $pid "*) continue ;; esac
        candidates="$candidates$line$newline"
    done
    mine=" $$ $branch " living=' ' left=
    IFS=$newline
    set -- $candidates
    unset IFS
    changed=yes
    while [ -n "$changed" ]; do
        changed=
        for line; do
            parse "$line"
            case $mine$living in *" $pid "*) continue ;; esac
            case $mine in
            *" $parent "*)
                mine="$mine$pid " changed=yes
                continue
                ;;
            esac
            belongs || continue
            living="$living$pid " left="$left $pid($comm)" changed=yes
            case $found in *" $pid:$start "*) ;; *) found="$found$pid:$start " ;; esac
            case $session in
            0 | "$connection_session" | "$own_session") ;;
            *) case $sessions in *" $session "*) ;; *) sessions="$sessions$session " ;; esac ;;
            esac
            [ "$comm" = sudo ] && uses_sudo=yes
            # The group of what sshd has started.
            [ "$parent" = "$connection" ] && groups="$groups $group "
        done
    done
    left=${left# }
    [ "$living" = ' ' ]
}

as_root() {
    [ -n "$uses_sudo" ] || return 1
    if [ -n "$password" ]; then
        printf '%s\n' "$password" | sudo -kS -p '' -- /bin/sh -c 'kill "$@"' sh "$@" >/dev/null && return
    fi
    sudo -n -- kill "$@" </dev/null >/dev/null && return
    sudo -n -- /bin/sh -c 'kill "$@"' sh "$@" </dev/null >/dev/null
}

# Sends a signal to the processes in $2, to each of them once.
send() {
    refused=
    for target in $2; do
        case $asked in *" $1:$target "*) continue ;; esac
        asked="$asked$1:$target "
        if [ "$1:$told" = TERM:group ] && kill -0 "$target" && read_stat "$target"; then
            case $groups in *" $group "*) continue ;; esac
        fi
        kill "-$1" "$target" || { [ -d "/proc/$target" ] && refused="$refused $target"; }
    done
    [ -z "$refused" ] || as_root "-$1" $refused || foreign=yes
}

seconds() {
    date +%s
}

nap() {
    sleep 0.1 || sleep 1
}

# What is of others cannot be seen where /proc hides it (hidepid, proc(5)).
gone() {
    [ -r /proc/1/stat ] || [ "$user" = 0 ] || answer hidden
    for pid in $doubtful; do
        read_stat "$pid" || continue
        case $state in Z | X) ;; *) left="$left $pid($comm)" ;; esac
    done
    [ -z "$left" ] || answer doubt $left
    answer "$1"
}

# Seconds are whole: no less than was wanted.
until=$(($(seconds) + grace + 1))
look && gone gone
send TERM "$living"
nap
while :; do
    look && gone gone
    [ "$(seconds)" -lt "$until" ] || break
    send TERM "$living"
    nap
done
# As long as new ones may come.
until=$(($(seconds) + 3))
while :; do
    send KILL "$living"
    nap
    look && gone killed
    [ "$(seconds)" -lt "$until" ] || break
done
[ -z "$foreign" ] || answer foreign "$left"
answer left "$left"
