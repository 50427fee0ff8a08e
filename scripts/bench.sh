#!/usr/bin/env bash
# Measures sshoal beside its peers. ARGS and arguments go to bench/run.py: `make bench ARGS=--help`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
# shellcheck disable=SC2086 # ARGS is a list of words
exec python3 bench/run.py ${ARGS:-} "$@"
