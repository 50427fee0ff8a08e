#!/usr/bin/env bash
# Runs every fuzz target for SECONDS_EACH seconds (60 unless told), one after the other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -d fuzz ]] || { echo "fuzz: no fuzz targets yet" >&2; exit 1; }
# libFuzzer's sanitizer flags are unstable ones: RUSTC_BOOTSTRAP lets the stable compiler take them.
export RUSTC_BOOTSTRAP=1
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
for target in $(cargo fuzz list); do
    cargo fuzz run --sanitizer none "$target" -- -max_total_time="${SECONDS_EACH:-60}" -timeout=10 -rss_limit_mb=2048
done
