#!/usr/bin/env bash
# Formatting, lints and the documentation's links: no warning is let through. The lists of mutations must fit the code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
scripts/mutations.py --check
scripts/docs.sh
