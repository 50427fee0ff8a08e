#!/usr/bin/env bash
# Formatting, lints and the documentation's links: no warning is let through. The lists of mutations must fit the code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
# The fuzz targets are a project of their own, that nothing else builds. libFuzzer itself is not needed to check them.
CUSTOM_LIBFUZZER_PATH=/nowhere/libFuzzer.a cargo check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz
# What has code of its own for each processor, for another one, where that one's std is there: `make aarch64` brings it, and runs it.
other=aarch64-unknown-linux-gnu
if [[ -d "$(rustc --print target-libdir --target "$other")" ]]; then
    cargo check --locked --target "$other" -p sshoal-spawn -p sshoal-spawn-capi -p sshoal-spawn-preload
else
    printf 'check: not checked for %s, whose std is not installed (make aarch64)\n' "$other"
fi
scripts/mutations.py --check
scripts/docs.sh
