
# For changes of sshd_config.

# A configuration that sshd does not take shuts everybody out at its next start.
check_sshd() {
    if ! sshd=$(command -v sshd) || ! "$sshd" -t; then
        echo 'sshd does not take its configuration' >&2
        exit 1
    fi
}

# Has sshd read its configuration again; connections go on.
reload_sshd() {
    check_sshd
    for name in ssh sshd; do
        systemctl reload "$name" 2>/dev/null && return
        service "$name" reload >/dev/null 2>&1 && return
    done
    for file in /run/sshd.pid /var/run/sshd.pid; do
        pid=$(cat "$file" 2>/dev/null) || continue
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] && kill -HUP "$pid" && return
    done
    echo 'sshd does not know of its configuration yet: have it read that, if it runs' >&2
}
