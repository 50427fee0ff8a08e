# What the injections of fresh.toml are written in: each runs after this as root in its host's mount namespace, where /etc, /home and
# /run are the host's own. NAME is the injection's name, MS its milliseconds, S the same in seconds, TOOLS the folder of the compiled
# programs, DNS the address of its name server, and OUTSIDE the mount namespace of the machine.
set -eu
if [ -z "$OUTSIDE" ] || [ "$(readlink /proc/self/ns/mnt)" = "$OUTSIDE" ]; then
    echo 'this is not the mount namespace of a host' >&2
    exit 1
fi
USER=sshoal-slow
HOME=/home/sshoal-slow
RUNS=/run/sshoal-slow/runs

# Lines of shell that write down that they run, and then wait, or use up CPU time.
waits() { printf 'echo %s >>%s\nsleep %s\n' "$NAME" "$RUNS" "$S"; }
burns() { printf 'echo %s >>%s\n/etc/burn %s\n' "$NAME" "$RUNS" "$MS"; }

# A line of sshd_config, before all others: the first value counts.
config() { sed -i "1i$1" /etc/ssh/sshd_config; }
pam() { printf '%s\n' "$1" >>/etc/pam.d/sshd; }
# A file for all, from standard input.
file() {
    mkdir -p "${1%/*}"
    cat >"$1"
    chmod 644 "$1"
}
script() {
    { echo '#!/bin/sh'; cat; } >"$1"
    chmod 755 "$1"
}
# A file of the account's, from standard input.
own() {
    mkdir -p "${1%/*}"
    cat >"$1"
    chmod 600 "$1"
    chown -R "$USER:" "$HOME"
}
shell() { sed -i "/^$USER:/s|[^:]*\$|$1|" /etc/passwd; }
# So many lines of authorized_keys of keys that are nobody's.
foreign_keys() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA%042d user%d\n", i, i }'; }
# Has names looked up with the injection's name server; the client's address is in no file.
ask_names() {
    printf 'nameserver %s\n' "$DNS" >/etc/resolv.conf
    sed -i '/^127\.0\.0\.1 /d' /etc/hosts
}
if [ -e "$TOOLS/burn" ]; then cp "$TOOLS/burn" /etc/burn; fi

