#!/usr/bin/env bash
# The interoperation matrix alone, with what it covers printed: OpenSSH, Dropbear, asyncssh, Go, russh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
exec cargo test --locked -p sshoal-interop
