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

# Puts the first file in the second one's place, in one step where that can be: nobody finds half of one.
put() {
    mv -f -- "$1" "$2" 2>/dev/null || { cat -- "$1" >"$2"; rm -f -- "$1"; }
}

restore() {
    file=$(real "$1")
    if [ -e "$file$suffix" ]; then
        put "$file$suffix" "$file"
        restored=yes
    fi
}

# Puts standard input before what is in the file.
prepend() {
    file=$(real "$1")
    cp -p -- "$file" "$file.new"
    cat - "$file" >"$file.new"
    put "$file.new" "$file"
}

# Changes a file by an expression of sed.
edit() {
    file=$(real "$1")
    cp -p -- "$file" "$file.new"
    sed "$2" "$file" >"$file.new"
    put "$file.new" "$file"
}
