#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS seconds (60 unless told), one after the other.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../fuzz/run.sh" "$@"
