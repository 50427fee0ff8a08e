#!/usr/bin/env bash
# Removes everything that was built, the virtual environments under target/ included.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo clean
