#!/usr/bin/env bash
# The documentation of all crates, with broken links as errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
