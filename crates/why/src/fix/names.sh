
# For UseDNS.

# Whether anything is, or may be, allowed to clients by their names, which sshd knows none of without UseDNS; prints what.
goes_by_names() {
    lines=$(cat /etc/ssh/sshd_config /etc/ssh/sshd_config.d/* 2>/dev/null)
    # What cannot be looked through here may go by names.
    printf '%s\n' "$lines" | grep -iE '^[[:space:]]*include[[:space:]=]' | grep -vE '/etc/ssh/sshd_config\.d/[^[:space:]/]*"?[[:space:]]*$' && return
    printf '%s\n' "$lines" | grep -iE '^[[:space:]]*authorized(keyscommand|principals(command|file))[[:space:]=]+[^[:space:]]' |
        grep -viE '[[:space:]="]none"?[[:space:]]*$' && return
    grep -E '^[[:space:]]*passwd:' /etc/nsswitch.conf 2>/dev/null | grep -E '(sss|ldap|winbind|nis)' && return
    grep -hE '^[^#]*pam_access' /etc/pam.d/* 2>/dev/null && return
    printf '%s\n' "$lines" | grep -iE -e '^[[:space:]]*match[[:space:]](.*[[:space:]])?host[[:space:]=]' \
        -e '^[[:space:]]*(allow|deny)users[[:space:]=].*@[^[:space:]]*[a-z]' \
        -e '^[[:space:]]*hostbasedauthentication[[:space:]="]+yes' && return
    set -f
    set -- $(printf '%s\n' "$lines" | sed -n -E 's/^[[:space:]]*[Aa]uthorized[Kk]eys[Ff]ile[[:space:]=]+//p' | tr -d '"') \
        .ssh/authorized_keys .ssh/authorized_keys2
    set +f
    { getent passwd 2>/dev/null || cat /etc/passwd; } | while IFS=: read -r user x uid gid about home shell; do
        for file in "$@"; do
            file=$(printf '%s\n' "$file" | sed -e "s|%h|$home|g" -e "s|%u|$user|g" -e "s|%U|$uid|g")
            case $file in /*) ;; *) file=$home/$file ;; esac
            [ -f "$file" ] || continue
            # An address of IPv6 has letters as well.
            sed -n 's/^.*[Ff][Rr][Oo][Mm]="\([^"]*\)".*/\1/p' "$file" | tr ',' '\n' | grep -q '^[^:]*[[:alpha:]][^:]*$' &&
                printf '%s: from="..."\n' "$file"
        done
    done | sort -u | grep .
}
