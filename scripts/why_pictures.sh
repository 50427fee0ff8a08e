#!/usr/bin/env bash
# Draws docs/pictures/why-*.png: the pages of `sshoal why --html` of slow hosts of the test bed, in headless Chromium. Needs root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
cargo build --locked -p sshoal -p sshoal-testbed
readonly programs="$PWD/target/debug"

dir="$(mktemp -d)"
mkfifo "$dir/input"
"$programs/sshoal-testbed" slow-hosts --dir "$dir/hosts" --until-eof \
    motd:300+bashrc:120 pam-account:200 use-dns:400 keys-command:80 clean sshrc:150 <"$dir/input" >"$dir/log" &
# Its end of the pipe is what keeps the hosts.
exec 3>"$dir/input"
trap 'exec 3>&-; wait; rm -rf "$dir"' EXIT
until [[ -e "$dir/hosts/ready" ]]; do
    kill -0 $! || { cat "$dir/log" >&2; exit 1; }
    sleep 0.1
done

why() { "$programs/sshoal" why -F "$dir/hosts/ssh_config" "$@" >/dev/null; }
why motd-300-and-bashrc-120 --html "$dir/host.html"
why -f "$dir/hosts/hosts" --parallel 1 --html "$dir/fleet.html"
python3 scripts/check_pages.py "$dir/host.html" "$dir/fleet.html" --pictures docs/pictures
