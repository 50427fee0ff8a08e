#!/usr/bin/env bash
# The tracer of `sshoal why --trace` for aarch64: its compiler, a build, its unit tests and a run under qemu's user mode. What a later
# build of sshoal needs for carrying it is printed last.
#
# The std for that processor is rustup's; where rustup cannot bring it, that of Debian's rustc-web, which is unpacked below target/ and
# not installed: it conflicts with any other rustc. The cross compiler, which links, and qemu are installed, as root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly target=aarch64-unknown-linux-gnu
readonly folder="$PWD/target/aarch64-rust"

# Whether a compiler has that std.
has_std() { [[ -d "$("$1" --print target-libdir --target "$target" 2>/dev/null)" ]]; }

missing=()
for need in aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64:qemu-user; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
[[ -e /usr/aarch64-linux-gnu/lib/libc.a ]] || missing+=(libc6-dev-arm64-cross)
if [[ ${#missing[@]} -gt 0 ]]; then
    [[ "$(id -u)" -eq 0 ]] || { printf 'tracer-aarch64: not root; run this, then try again: sudo apt-get install %s\n' "${missing[*]}" >&2; exit 1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

# Debian's compiler for this machine's processor, with its std for the other one.
unpack_debians() {
    local own version llvm
    own="$(dpkg --print-architecture)"
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/debs"
    # Of the machine's own settings nothing changes: the other processor's lists are kept here.
    local apt=(apt-get -q -o "APT::Architecture=$own" -o "APT::Architectures::=$own" -o APT::Architectures::=arm64
        -o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" -o APT::Sandbox::User=root)
    "${apt[@]}" update
    version="$(apt-cache "${apt[@]:2}" show rustc-web | sed -n 's/^Version: \([0-9]*\.[0-9]*\)\..*/\1/p' | head -n 1)"
    llvm="$(apt-cache "${apt[@]:2}" depends "libstd-rust-web-$version" | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p' | head -n 1)"
    (cd "$folder/debs" && "${apt[@]}" download rustc-web "libstd-rust-web-$version" "$llvm" libstd-rust-web-dev libstd-rust-web-dev:arm64)
    local package
    for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder"; done
    rm -rf "$folder/debs" "$folder/apt"
    cat >"$folder/rustc" <<'END'
#!/bin/sh
# Debian's compiler, unpacked.
here=$(dirname "$(readlink -f "$0")")
libraries=$(dirname "$(ls "$here"/usr/lib/*/librustc_driver-*.so | head -n 1)")
LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/usr/bin/rustc" "$@"
END
    chmod +x "$folder/rustc"
}

compiler="$(command -v rustc)"
if ! has_std "$compiler" && ! { rustup target add "$target" 2>/dev/null && has_std "$compiler"; }; then
    compiler="$folder/rustc"
    has_std "$compiler" 2>/dev/null || unpack_debians
    has_std "$compiler" || { echo 'tracer-aarch64: no compiler with a std for aarch64 could be had' >&2; exit 1; }
fi
"$compiler" --version

# As crates/tracer/build.rs does it.
readonly tracer="$PWD/target/tracer-aarch64"
"$compiler" --edition 2024 --crate-name sshoal_tracer --target "$target" -C opt-level=s -C lto=fat -C codegen-units=1 \
    -C panic=abort -C strip=symbols -C target-feature=+crt-static -C relocation-model=static \
    -C linker=aarch64-linux-gnu-gcc -o "$tracer" crates/tracer/src/main.rs
qemu-aarch64 "$tracer" --check

# What the crates' tests take of qemu is in reach of its user mode; in a folder of their own, since this compiler's files are no other's.
export RUSTC="$compiler" CARGO_TARGET_DIR="$PWD/target/aarch64"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
# qemu is whose program /proc/PID/exe shows, and its libraries are mapped under other names.
readonly sees_qemu=(
    image::tests::our_own_process_is_seen
    probes::tests::functions_of_the_c_library_are_found_in_its_file
)
skip=()
for test in "${sees_qemu[@]}"; do skip+=(--skip "$test"); done
cargo test --locked --target "$target" -p sshoal-tracer --bins -- "${skip[@]}"
cargo test --locked --target "$target" -p sshoal-trace --lib

# A shell, followed by looking at /proc: netlink's proc connector and tracefs are not for qemu's user mode.
own="$(mktemp -d)"
trap 'rm -rf "$own"' EXIT
mkfifo "$own/go"
sh -c 'read -r go; ( exec sleep 1 ); :' <"$own/go" &
shell=$!
{ exec 8>"$own/go"; sleep 1; echo go >&8; sleep 1; } 2>/dev/null |
    qemu-aarch64 "$tracer" --pid "$shell" --without tracefs,proc-connector >"$own/said"
wait "$shell"
grep -a -q 'by proc' "$own/said" && grep -a -q $'\tsleep\t1' "$own/said" || { echo 'tracer-aarch64: it has seen nothing' >&2; exit 1; }
echo "tracer-aarch64: built and tried; to carry it: SSHOAL_TRACER_RUSTC=$compiler cargo build --release"
