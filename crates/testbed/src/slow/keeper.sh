# Keeps one host: makes its view of the machine, runs its sshd, and ends and removes everything of it when standard input
# ends, that is, also when whoever started this has died. Runs in a mount namespace of its own.
#
# $1: the host's folder, with `files` to put into the view, and `root`, empty
# $2: the mount namespace outside
# $3: the control group to make for the server; empty for none
# $4: the server, an absolute path
set -eu
PATH="$PATH:/usr/sbin:/sbin"
dir=$1 outside=$2 group=$3 server=$4
root="$dir/root" places='etc home run var/log' runs=''

# All processes of this namespace are going to be killed by their numbers: it must not be everybody's, and the numbers in /proc
# must be those that kill(2) means.
here=$(readlink /proc/self/ns/mnt)
if [ -z "$outside" ] || [ "$here" = "$outside" ]; then
    echo 'the mount namespace is not a new one' >&2
    exit 1
fi
read -r self _ </proc/self/stat
if [ "$self" != "$$" ]; then
    echo '/proc is that of another process namespace: mount it anew (unshare --mount-proc)' >&2
    exit 1
fi

# No subshell and no program may run in here: it would be found, too.
find_others() {
    others=''
    for process in /proc/[0-9]*; do
        if [ "$process" != "/proc/$$" ] && [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
            others="$others ${process#/proc/}"
        fi
    done
}

end() {
    set +e
    trap '' HUP INT TERM
    find_others
    # Again until none is left: one may have been born meanwhile.
    while [ -n "$others" ]; do
        kill -KILL $others 2>/dev/null
        sleep 0.01
        find_others
    done
    for place in $places; do umount -l "/$place" 2>/dev/null; done
    umount -l "$root" 2>/dev/null
    tries=100
    while [ -n "$group" ] && [ -d "$group" ] && [ "$tries" -gt 0 ]; do
        rmdir "$group" 2>/dev/null || sleep 0.01
        tries=$((tries - 1))
    done
    # A host that never ran leaves its log to be read.
    if [ -n "$runs" ]; then rm -rf -- "$dir"; fi
}
trap end EXIT
trap 'exit 1' HUP INT TERM

mount -t tmpfs -o mode=755 sshoal-slow "$root"
mkdir -p "$root/etc" "$root/home" "$root/run" "$root/var/log"
cp -a /etc/. "$root/etc"
rm -rf "$root/etc/ssh" "$root/etc/update-motd.d" "$root/etc/nologin"
cp -a --remove-destination "$dir/files/." "$root"
rm -rf "$dir/files"
# By names that lead there even if the host's folder lies in /home or /run, and is covered meanwhile.
cd "$root"
for place in $places; do mount --no-canonicalize --bind "$place" "/$place"; done
cd /

# A name service of its own has to be known to the dynamic linker. -X: no links in the machine's folders are touched.
if [ -e /etc/directory ]; then
    if [ -d /var/cache/ldconfig ]; then mount -t tmpfs sshoal-slow /var/cache/ldconfig; fi
    ldconfig -X
fi

if [ -n "$group" ]; then mkdir "$group"; fi
# The server ends even if this is killed. What runs in the background of a shell ignores SIGINT and SIGQUIT, sessions
# included, unless told otherwise. It learns nothing of the environment here.
sh -c 'if [ -n "$1" ]; then echo $$ >"$1/cgroup.procs"; fi
    exec env -i --default-signal=INT,QUIT PATH="$PATH" setpriv --pdeathsig KILL "$2" -D -e -f /etc/ssh/sshd_config' \
    sh "$group" "$server" </dev/null >/dev/null &
runs=yes
echo $!

read -r _ || :
