# What a host without SFTP runs in its place, for POSIX sh with GNU's, BusyBox' or toybox' programs.
#
# It is sent a paragraph at a time, each as one line, to a loop that evaluates lines; so everything ends with a semicolon.
# Then come requests: calls of these functions. Each answers in its turn:
#
#   0              it is done
#   ! WORDS        it is not
#   MODE SIZE ...  what stat says, a line for each path
#   pPATH NUL      a path
#   vNUMBERS       of a file system
#   dOCTETS        so many octets of a file follow, then t and what dd says of them

LC_ALL=C; export LC_ALL; unset CDPATH lacks; cd 2>/dev/null; umask=$(umask); exec 3>&1; fmt="%f %s %u %g %X %Y"; export fmt;

# Words of a failure, on one line.
no() { printf "! %s\n" "$(printf %s "$1" | tr "\n" " ")"; };

is() { e=$("$@" 2>&1 </dev/null) && echo 0 || no "$e"; };

# What stat says of several: all at once, or one by one if any of them cannot be looked at.
st() {
s=$1; shift;
o=$(stat $s -c "$fmt" "$@" 2>/dev/null </dev/null) && { printf "%s\n" "$o"; return; };
for f do o=$(stat $s -c "$fmt" "$f" 2>&1 </dev/null) && printf "%s\n" "$o" || no "$o"; done;
};

# Names in a folder, in groups: how many, each with a NUL behind it, what stat says of each, or a dash.
group='echo n$#; printf "%s\0" "$@";
o=$(stat -c "$fmt" "$@" 2>/dev/null) || o=$(for f do stat -c "$fmt" "$f" 2>/dev/null || echo -; done);
printf "%s\n" "$o"';

li() {
e=$(stat -c %f "$1/." 2>&1 </dev/null) || { no "$e"; return; };
test -r "$1" || { no "$1: Permission denied"; return; };
echo 0;
( cd "$1" || exit; for p in "./.[!.]*" "./..?*" "./*"; do
set -- $p; test $# -gt 1 || test -e "$1" || test -L "$1" || continue;
printf "%s\0" "$@"; done ) | xargs -0 -r -n 500 sh -c "cd \"\$0\"; $group" "$1";
echo .;
};

# To read: nobody waits for who writes to a pipe.
rd() { test -p "$1" && { no "$1: is a named pipe"; return; }; e=$( ( exec <"$1" ) 2>&1 ) && echo 0 || no "$e"; };

# To write, a file that is there.
wr() {
test -e "$1" || { no "$1: No such file"; return; };
test -f "$1" || test -b "$1" || { no "$1: not a file"; return; };
e=$( ( exec 1<>"$1" ) 2>&1 ) && echo 0 || no "$e";
};

# To write, a new file of this mode.
nw() {
m=$(($2 & ~0$umask));
e=$( ( umask 077; set -C; : >"$1" ) 2>&1 ) || { no "$e"; return; };
test $m -eq 384 && echo 0 || is chmod $(printf %o $m) "$1";
};

# So many octets of a file from an offset: padded if the file has become shorter, so that what follows is found.
ge() {
n=$3;
if test -f "$1"; then s=$(stat -L -c %s "$1" 2>&1 </dev/null) || { no "$s"; return; };
n=$((s - $2)); test $n -gt 0 || n=0; test $n -lt $3 || n=$3; fi;
e=$( ( exec <"$1" ) 2>&1 ) || { no "$e"; return; };
k=$((n / 65536)); r=$((n % 65536)); echo d$n;
e=$( { { { { test $2 -eq 0 || dd bs=1 skip=$2 count=0; test $k -eq 0 || dd bs=65536 count=$k;
test $r -eq 0 || dd bs=$r count=1; } <"$1" 2>&4;
z=0000000000000000; z=$z$z$z$z; z=$z$z$z$z; while printf %s $z; do :; done; } |
{ test $k -eq 0 || dd bs=65536 count=$k iflag=fullblock; test $r -eq 0 || dd bs=$r count=1 iflag=fullblock; } >&3; }
2>/dev/null; } 4>&1 );
echo t $e;
};

# Whole blocks and a rest from our input to a file, at an offset: all of it is taken whatever becomes of the file.
pu() {
e=$( { test $3 -eq 0 || dd bs=65536 count=$3 iflag=fullblock; test $4 -eq 0 || dd bs=$4 count=1 iflag=fullblock; } 2>/dev/null |
{ { { test $2 -eq 0 || dd bs=1 seek=$2 count=0 conv=notrunc 2>/dev/null; } && cat; } 1<>"$1" ||
{ echo "cannot write" >&2; cat >/dev/null; }; } 2>&1 );
test -z "$e" && echo 0 || no "$e";
};

# A file's length.
le() { e=$(dd if=/dev/null of="$1" bs=1 seek=$2 count=0 2>&1 </dev/null) && echo 0 || no "$e"; };

# Owner, mode, last modification and access; -h before them: of a symbolic link itself.
se() {
e=$( { { test -z "$3" || chown $2 "$3" "$1"; } && { test -z "$4" || chmod $4 "$1"; } &&
{ test -z "$5" || touch -c $2 -d @$5 "$1"; }; } 2>&1 </dev/null ) || { no "$e"; return; };
test "$5" = "$6" || touch -c $2 -a -d @$6 "$1" 2>/dev/null </dev/null; echo 0;
};

# Whoever may not write to a file may yet bring it to the disk.
sy() { e=$(dd if=/dev/null of="$1" conv=notrunc,fsync 2>&1 </dev/null) && echo 0 || is sync "$1"; };

md() { is mkdir -m $(printf %o $(($2 & ~0$umask))) "$1"; };

rm_() { if test -d "$1" && ! test -L "$1"; then no "$1: Is a directory"; else is rm "$1"; fi; };

# In place of what has that name, but never into it. BusyBox' mv does not replace a link to a folder by itself.
mv_() {
if ! test -d "$2"; then is mv -f "$1" "$2"; elif ! test -L "$2"; then no "$2: Is a directory";
elif mv -f -T "$1" "$2" 2>/dev/null </dev/null; then echo 0; else is over "$1" "$2"; fi;
};

over() { rm "$2" && mv "$1" "$2"; };

free() { if test -e "$1" || test -L "$1"; then no "$1: File exists"; return 1; fi; };

ln_() { free "$3" && if test -n "$1"; then is ln $1 -- "$2" "$3"; else is ln "$2" "$3"; fi; };

rn() { free "$2" && is mv "$1" "$2"; };

rl() {
test -L "$1" || { no "$(stat -c "is no link" "$1" 2>&1 </dev/null)"; return; };
o=$(readlink -n "$1" </dev/null && echo .) && printf "p%s\0" "${o%.}" || no "$1: cannot be read";
};

rp() { o=$(readlink -f -n "$1" </dev/null && echo .) && printf "p%s\0" "${o%.}" || no "$1: No such file"; };

vf() { o=$(stat -f -c "%S %a %c %d" "$1" 2>&1 </dev/null) && printf "v%s\n" "$o" || no "$o"; };

for c in stat dd sync cat tr xargs chmod chown touch mkdir rmdir rm mv ln readlink; do
command -v $c >/dev/null || lacks="$lacks $c"; done;
stat -c "$fmt" / >/dev/null 2>&1 </dev/null || lacks="$lacks stat-with-c";
test "$(printf xy | dd bs=2 count=1 iflag=fullblock 2>/dev/null)" = xy || lacks="$lacks dd-with-fullblock";
echo "sshoal-ready$lacks";
