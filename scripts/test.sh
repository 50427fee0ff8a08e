#!/usr/bin/env bash
# Everything that must hold: set-up, formatting, lints and all tests. Closes with "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh all
scripts/check.sh

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
status=0
# Nothing is built twice here: there is no use in what makes the second time quicker.
[[ -z "${CI:-}" ]] || export CARGO_INCREMENTAL=0
# Binaries first, as tests of one crate run the programs of others; with all that the tests need, so that features are the same.
cargo build --workspace --bins --tests --locked
# A test program that hangs is ended, and its last lines say in which test.
runner="CARGO_TARGET_$(rustc -vV | awk '/^host:/ { print toupper($2) }' | tr - _)_RUNNER"
export "$runner=timeout --foreground --verbose --kill-after=10 ${TEST_PROGRAM_SECONDS:-1200}"
# Whoever runs this in the background may have SIGINT ignored, which programs inherit: tests send it. Through a file and not a pipe, which
# what a hanging test has left behind could keep open.
env --default-signal=HUP,INT,QUIT,TERM cargo test --workspace --no-fail-fast --locked >"$log" 2>&1 &
tail --lines=+1 --follow --pid=$! "$log"
wait $! || status=$?

# "test result: ok. 12 passed; 0 failed; 0 ignored; ..." once for each test binary.
read -r passed failed < <(awk '
    /^test result:/ {
        for (i = 2; i <= NF; i++) {
            if ($i == "passed;") passed += $(i - 1)
            if ($i == "failed;") failed += $(i - 1)
        }
    }
    END { print passed + 0, failed + 0 }' "$log")

# A test binary that does not build, or dies, prints no result line of its own: it is one failure.
if [[ $status -ne 0 && $failed -eq 0 ]]; then
    printf 'test: cargo test ended with status %d without counting a failed test\n' "$status" >&2
    failed=1
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $status -eq 0 && $failed -eq 0 && $passed -gt 0 ]]
