#!/usr/bin/env bash
# The crates that have code of their own for each processor, for aarch64: built and linked, and their tests run under qemu's user mode
# as far as that can run them. On such a machine `make test` runs all of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly target=aarch64-unknown-linux-gnu
readonly crates=(-p sshoal-spawn -p sshoal-spawn-capi -p sshoal-spawn-preload)

if [[ ! -d "$(rustc --print target-libdir --target "$target")" ]]; then
    rustup target add "$target"
fi
missing=()
for need in aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64:qemu-user; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
[[ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ]] || missing+=(libc6-dev-arm64-cross)
if [[ ${#missing[@]} -gt 0 ]]; then
    [[ "$(id -u)" -eq 0 ]] || { printf 'aarch64: not root; run this, then try again: sudo apt-get install %s\n' "${missing[*]}" >&2; exit 1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
cargo clippy --locked --target "$target" "${crates[@]}" --all-targets -- -D warnings
cargo build --locked --target "$target" "${crates[@]}"

# Under qemu a child that shares its parent's memory has a copy of it, and its parent does not wait for its exec: what rests on that is left
# to real machines (docs/spawn.md, "What it cannot do"). Tests that trace or filter system calls are, too.
readonly rests_on_shared_memory=(
    a_program_is_searched_in_the_path_it_gets
    a_file_that_may_not_be_executed_is_the_answer_when_nothing_else_is_found
    a_relative_program_is_looked_for_in_its_own_directory
    sessions_and_groups_are_new_or_joined
    the_caller_s_own_mask_is_as_before
)
skip=()
for test in "${rests_on_shared_memory[@]}"; do skip+=(--skip "$test"); done
cargo test --locked --target "$target" -p sshoal-spawn --lib --test streams --test asynchronous --test surroundings -- "${skip[@]}"
# qemu keeps signals for itself, of which dash then says something else.
cargo test --locked --target "$target" -p sshoal-spawn-preload --lib -- --skip dash_says_of_each_signal_what_is_said_here
