#!/usr/bin/env bash
# Formatting, lints and the documentation's links: no warning is let through.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
scripts/docs.sh
