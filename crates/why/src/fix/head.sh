# Nothing has been changed. Read this first, change what does not suit, then:
#   sh fix.sh here             on this machine, as the user who logs in
#   sh fix.sh host             on the host, as root (copy it there)
# Either says how its run is called. Each file that it changes stays beside the new one as it was, as FILE.before-sshoal-RUN, until
#   sh fix.sh undo-here RUN    puts this machine's files back
#   sh fix.sh undo-host RUN    puts the host's files back
# What is merely suspected, or looks like something else, is a comment.
set -eu
umask 077
# Not everybody's PATH has sshd.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# A file itself, where its name is a link.
real() {
    readlink -f -- "$1" 2>/dev/null || printf '%s\n' "$1"
}

# An empty file where there is none.
have() {
    mkdir -p -- "${1%/*}"
    [ -e "$1" ] || : >"$1"
}

# Keeps a file as it was before this run. One that is missing is not made: it might stand for another one, elsewhere.
backup() {
    file=$(real "$1")
    if [ ! -f "$file" ]; then
        echo "there is no $1" >&2
        exit 1
    fi
    [ -e "$file$suffix" ] || cp -p -- "$file" "$file$suffix"
}

# Notes what a file is after this run.
note() {
    file=$(real "$1")
    cksum <"$file" >"$file$suffix.sum"
}

# Puts the first file in the second one's place, in one step where that can be: nobody finds half of one.
put() {
    mv -f -- "$1" "$2" 2>/dev/null || { cat -- "$1" >"$2"; rm -f -- "$1"; }
}

# Puts a file back, unless somebody has changed it since. Others are put back whatever becomes of it.
restore() {
    file=$(real "$1")
    rm -f -- "$file$suffix.new"
    [ -e "$file$suffix" ] || return 0
    if [ -e "$file$suffix.sum" ] && [ "$(cksum <"$file")" != "$(cat "$file$suffix.sum")" ]; then
        echo "$file has been changed since, and is left alone: what it was before is $file$suffix" >&2
        failed=yes
    elif put "$file$suffix" "$file"; then
        rm -f -- "$file$suffix.sum"
        restored=yes
    else
        echo "$file is not put back: what it was is $file$suffix" >&2
        failed=yes
    fi
}

# Puts standard input before what is in the file.
prepend() {
    file=$(real "$1")
    cp -p -- "$file" "$file$suffix.new"
    cat - "$file" >"$file$suffix.new"
    put "$file$suffix.new" "$file"
}

# Changes a file by an expression of sed.
edit() {
    file=$(real "$1")
    cp -p -- "$file" "$file$suffix.new"
    sed "$2" "$file" >"$file$suffix.new"
    put "$file$suffix.new" "$file"
}
