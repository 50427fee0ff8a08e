#!/usr/bin/env bash
# How well `sshoal why` finds what makes hosts slow, on hosts that are slow on purpose (see bench/README.md). Needs root.
# ARGS and arguments go to bench/score_why.py: `make score-why ARGS=--quick`, `ARGS='--only motd,bashrc --tiers no-root'`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
# Each by itself, as it is released: packages that are built together get each other's features.
for package in sshoal sshoal-testbed; do cargo build --release --locked -p "$package"; done
cargo build --release --locked -p sshoal-why --example judge_again
# shellcheck disable=SC2086 # ARGS is a list of words
exec python3 bench/score_why.py ${ARGS:-} "$@"
