# What a host without SFTP runs in its place, for POSIX sh with GNU's, BusyBox' or toybox' programs.
#
# It is sent a paragraph at a time, each as one line, to a loop that evaluates lines; so everything ends with a semicolon.
# Each line begins with a word that nobody else knows: octets of a file are never taken for a line, whatever goes wrong.
# Then come requests: calls of these functions. Each answers in its turn:
#
#   0              it is done
#   ! WORDS        it is not
#   =DEVICE:INODE  it is open, and which file it is
#   MODE SIZE ...  what stat says, a line for each path
#   pPATH NUL      a path
#   vNUMBERS       of a file system
#   dOCTETS        so many octets of a file follow, then t and what dd says of them

test -c /dev/null || { echo "sshoal-lacks /dev/null"; exit; };

LC_ALL=C; export LC_ALL; unset CDPATH lacks; cd 2>/dev/null; exec 3>&1; fmt="%f %s %u %g %X %Y"; export fmt;

# Words of a failure, on one line.
no() { printf "! %s\n" "$(printf %s "$1" | tr "\n" " ")"; };

is() { e=$("$@" 2>&1 </dev/null) && echo 0 || no "$e"; };

# What stat says of several: all at once, or one by one if any of them cannot be looked at.
st() {
s=$1; shift;
o=$(stat $s -c "$fmt" "$@" 2>/dev/null </dev/null) && { printf "%s\n" "$o"; return; };
for f do o=$(stat $s -c "$fmt" "$f" 2>&1 </dev/null) && printf "%s\n" "$o" || no "$o"; done;
};

lo() { st -L "$1"; };

# Names in a folder, in groups: how many, each with a NUL behind it, what stat says of each, or a dash. The last one is a slash,
# which is no name: all have been told.
group='echo n$#; printf "%s\0" "$@";
o=$(stat -c "$fmt" "$@" 2>/dev/null) || o=$(for f do stat -c "$fmt" "$f" 2>/dev/null || echo -; done);
printf "%s\n" "$o"';

li() {
e=$(stat -c %f "$1/." 2>&1 </dev/null) || { no "$e"; return; };
test -r "$1" || { no "$1: Permission denied"; return; };
echo 0;
{ ( cd "$1" || exit; for p in "./.[!.]*" "./..?*" "./*"; do
set -- $p; test $# -gt 1 || test -e "$1" || test -L "$1" || continue;
printf "%s\0" "$@" || exit; done; printf "/\0" ) | xargs -0 -r -n 500 sh -c "cd \"\$0\" || exit; $group" "$1"; } 2>/dev/null &&
echo . || no "$1: its names cannot be told";
};

# Which file that is, of what has just been opened.
wh() { o=$(stat -L -c "%d:%i" "$1" 2>&1 </dev/null) && printf "=%s\n" "$o" || no "$o"; };

# Whether it still is that one; and a call for it, unless another has its place by then.
sa() { test "$(stat -L -c "%d:%i" "$1" 2>/dev/null </dev/null)" = "$2"; };
of() { if sa "$3" $1; then shift; "$@"; else no "$3: another file has taken its place"; fi; };

# To read: nobody waits for who writes to a pipe.
rd() { test -p "$1" && { no "$1: is a named pipe"; return; }; e=$( ( exec <"$1" ) 2>&1 ) && wh "$1" || no "$e"; };

# To write, a file that is there.
wr() {
test -e "$1" || { no "$1: No such file"; return; };
test -f "$1" || test -b "$1" || { no "$1: not a file"; return; };
e=$( ( exec 7<>"$1" ) 2>&1 ) && wh "$1" || no "$e";
};

# To write, a new file of this mode.
nw() {
e=$( ( umask 077; set -C; : >"$1" ) 2>&1 ) || { no "$e"; return; };
test $2 = 00600 || e=$(chmod $2 "$1" 2>&1 </dev/null) && wh "$1" || no "$e";
};

# Octets of that file from an offset: blocks and a rest, which is padded if it has fewer, so that what follows is found. Not every dd says how
# many octets a part of a block has: then the file's size does.
ge() {
sa "$1" $2 || { no "$1: another file has taken its place"; return; };
e=$( ( exec <"$1" ) 2>&1 ) || { no "$e"; return; };
echo d$6;
e=$( { { { { test $3 = 0 || dd bs=1 skip=$3 count=0; test $4 = 0 || dd bs=65536 count=$4 iflag=fullblock;
test $5 = 0 || dd bs=$5 count=1 iflag=fullblock; } <"$1" 2>&4;
z=0000000000000000; z=$z$z$z$z; z=$z$z$z$z; while printf %s $z; do :; done; } |
{ test $4 = 0 || dd bs=65536 count=$4 iflag=fullblock; test $5 = 0 || dd bs=$5 count=1 iflag=fullblock; } >&3; }
2>/dev/null; } 4>&1 );
case $e in *"+1 records in"*) s=$(stat -L -c %s "$1"); test -f "$1" && test "$s" = 0 && s=$(wc -c <"$1");; *) s=;; esac;
sa "$1" $2 && echo t $e size $s || echo t changed;
};

# Blocks and a rest from our input to that file, at an offset: what is wrong with it, then what dd says of the input. All of it is taken
# whatever becomes of the file. Descriptor 7 and no standard one: bash 5.2 forgets the 1 of 1<> within a command's substitution.
pu() {
e=$( { { test $4 = 0 || dd bs=65536 count=$4 iflag=fullblock; test $5 = 0 || dd bs=$5 count=1 iflag=fullblock; } 2>&4 |
{ m=$( { sa "$1" $2 || { echo "another file has taken its place"; false; }; } 2>&1 &&
{ { test $3 = 0 || dd bs=1 seek=$3 count=0 conv=notrunc >&7 2>/dev/null; } && cat >&7; } 2>&1 7<>"$1" ) ||
{ no "$1: $m" >&3; cat >/dev/null; }; }; } 4>&1 );
echo w $e;
};

# Length, owner, mode, last modification and access; -h before them: of a symbolic link itself. Owner before mode, for chown(2) takes the
# bits for set-user-ID away.
se() {
e=$( { { test -z "$7" || dd if=/dev/null of="$1" bs=1 seek=$7 count=0; } && { test -z "$3" || chown $2 "$3" "$1"; } &&
{ test -z "$4" || chmod $4 "$1"; } && { test -z "$5" || touch -c $2 -d @$5 "$1"; }; } 2>&1 </dev/null ) || { no "$e"; return; };
test "$5" = "$6" || touch -c $2 -a -d @$6 "$1" 2>/dev/null </dev/null; echo 0;
};

# A sync that takes no paths brings all to the disk, and so does one for whoever may not open the file. No dd: it would make a file anew that
# has been removed.
sy() {
e=$(sync "$1" 2>&1 </dev/null) && { echo 0; return; };
case $e in *": Permission denied"|*": Operation not permitted") is sync;; *) no "$e";; esac;
};

md() { is mkdir -m $2 "$1"; };

rm_() { if test -d "$1" && ! test -L "$1"; then no "$1: Is a directory"; else is rm "$1"; fi; };

# In place of what has that name, but never into it. GNU's mv refuses another name of the same file, which rename(2) leaves alone; BusyBox' mv
# does not replace a link to a folder by itself.
mv_() {
if test -f "$1" && test -f "$2" && ! test -L "$1" && ! test -L "$2" && test "$1" -ef "$2"; then echo 0;
elif ! test -d "$2"; then is mv -f "$1" "$2"; elif ! test -L "$2"; then no "$2: Is a directory";
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

for c in stat dd sync cat tr wc xargs chmod chown touch mkdir rmdir rm mv ln readlink; do
command -v $c >/dev/null || lacks="$lacks $c"; done;
stat -c "$fmt" / >/dev/null 2>&1 </dev/null || lacks="$lacks stat-with-c";
test "$(printf xy | dd bs=2 count=1 iflag=fullblock 2>/dev/null)" = xy || lacks="$lacks dd-with-fullblock";
test -z "$lacks" && echo "sshoal-ready $(umask)" || echo "sshoal-lacks$lacks";
