#!/usr/bin/env bash
# Starts 1,000 simulated hosts on the loopback interface and runs a command on all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh build
cargo build --release --locked -p sshoal -p sshoal-testbed
# {dir} is the folder with the files of a client: the test bed fills it in. Arguments go to `sshoal run`.
PATH="$PWD/target/release:$PATH" exec sshoal-testbed with-hosts --hosts "${HOSTS:-1000}" -- \
    sshoal run -F '{dir}/ssh_config' -f '{dir}/hosts' "$@" -- "${COMMAND:-hostname}"
