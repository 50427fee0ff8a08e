#!/usr/bin/env bash
# Runs fuzz targets one after the other, FUZZ_SECONDS (60) seconds each, and fails at the first that finds something.
# Without arguments: all targets. Findings stay in fuzz/artifacts, and what was learned in fuzz/corpus.
#
# libFuzzer needs unstable compiler flags: the nightly toolchain has them, and RUSTC_BOOTSTRAP=1 opens them in any other.
# AddressSanitizer is used where it works, which a tiny program finds out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly seconds="${FUZZ_SECONDS:-60}"

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: installing cargo-fuzz" >&2
    cargo install --locked cargo-fuzz
fi

if cargo +nightly --version >/dev/null 2>&1; then
    export RUSTUP_TOOLCHAIN=nightly
else
    export RUSTC_BOOTSTRAP=1
fi

# Whether this compiler's AddressSanitizer builds programs that start here.
sanitizes() {
    local probe status=0
    probe="$(mktemp -d)"
    echo 'fn main() {}' >"$probe/main.rs"
    { rustc -Zsanitizer=address -o "$probe/main" "$probe/main.rs" && "$probe/main"; } >/dev/null 2>&1 || status=1
    rm -rf "$probe"
    return "$status"
}
sanitizer=address
sanitizes || sanitizer=none

if (($# > 0)); then
    targets=("$@")
else
    mapfile -t targets < <(cargo fuzz list --fuzz-dir .)
fi
echo "fuzz: ${#targets[@]} targets, $seconds s each, sanitizer $sanitizer, $(rustc --version)" >&2
for target in "${targets[@]}"; do
    echo "fuzz: $target" >&2
    cargo fuzz run --fuzz-dir . --sanitizer "$sanitizer" "$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1
done
