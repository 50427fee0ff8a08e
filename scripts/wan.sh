#!/usr/bin/env bash
# A shell behind the delay line: 100 ms round trips unless told otherwise (see `sshoal-testbed wan --help`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
cargo build --release --locked -p sshoal -p sshoal-testbed
PATH="$PWD/target/release:$PATH" exec sshoal-testbed wan "$@"
