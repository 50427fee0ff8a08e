#!/usr/bin/env bash
# Installs sshoal and its other name, mpssh, with manual pages and completions under PREFIX (default /usr/local). DESTDIR is
# put before it. PROFILE=debug installs what `cargo build -p sshoal` has built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly prefix="${PREFIX:-/usr/local}" profile="${PROFILE:-release}"
readonly root="${DESTDIR:-}$prefix" built="${CARGO_TARGET_DIR:-target}/$profile"
readonly man="$root/share/man/man1" program="$root/bin/sshoal"
readonly bash="$root/share/bash-completion/completions" zsh="$root/share/zsh/site-functions"
readonly fish="$root/share/fish/vendor_completions.d"

if [[ "$profile" == release ]]; then
    cargo build --release --locked -p sshoal
fi
install -d "$root/bin" "$man" "$bash" "$zsh" "$fish"
install -m 755 "$built/sshoal" "$program"
ln -sf sshoal "$root/bin/mpssh"

# Every command that --help lists has a page, and so has the whole.
"$program" man >"$man/sshoal.1"
while read -r command; do
    "$program" man "$command" >"$man/sshoal-$command.1"
done < <("$program" --help | awk '/^Commands:/ { list = 1; next } list && NF == 0 { exit } list { print $1 }')
mv "$man/sshoal-mpssh.1" "$man/mpssh.1"
for name in sshoal mpssh; do
    "$program" completions bash "$name" >"$bash/$name"
    "$program" completions zsh "$name" >"$zsh/_$name"
    "$program" completions fish "$name" >"$fish/$name.fish"
done
