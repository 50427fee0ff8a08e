#!/usr/bin/env bash
# Starts sshd hosts whose login is slow, each for a known reason, to try `sshoal why` on (see docs/slow-hosts.md). Needs root.
# ARGS and arguments go to `sshoal-testbed slow-hosts`: `make slow-hosts ARGS=--list`, `ARGS='pam-account:50 clean'`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
cargo build --locked -p sshoal -p sshoal-testbed
# shellcheck disable=SC2086 # ARGS is a list of words
PATH="$PWD/target/debug:$PATH" exec sshoal-testbed slow-hosts ${ARGS:-} "$@"
