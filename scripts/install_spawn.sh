#!/usr/bin/env bash
# Installs libsshoal_spawn (libraries, headers, pkg-config file) and libsshoal_preload, with their manual pages, under
# PREFIX (default /usr/local). DESTDIR is put before it. PROFILE=debug installs what `cargo build -p sshoal-spawn-capi
# -p sshoal-spawn-preload` has built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly prefix="${PREFIX:-/usr/local}" profile="${PROFILE:-release}"
readonly root="${DESTDIR:-}$prefix" source="crates/spawn_capi" preload="crates/spawn_preload"
readonly built="${CARGO_TARGET_DIR:-target}/$profile"
# The number in the shared library's name for the linker: see crates/spawn_capi/build.rs.
readonly abi=0
version="$(awk -F'"' '/^version/ { print $2; exit }' Cargo.toml)"

if [[ "$profile" == release ]]; then
    cargo build --release --locked -p sshoal-spawn-capi -p sshoal-spawn-preload
fi
install -d "$root/lib/pkgconfig" "$root/include" "$root/share/man/man3" "$root/share/man/man7"
install -m 644 "$built/libsshoal_spawn.a" "$root/lib/"
install -m 755 "$built/libsshoal_spawn.so" "$root/lib/libsshoal_spawn.so.$version"
ln -sf "libsshoal_spawn.so.$version" "$root/lib/libsshoal_spawn.so.$abi"
ln -sf "libsshoal_spawn.so.$abi" "$root/lib/libsshoal_spawn.so"
install -m 755 "$built/libsshoal_preload.so" "$root/lib/"
install -m 644 "$source"/include/*.h "$root/include/"
install -m 644 "$source/man/sshoal_spawn.3" "$root/share/man/man3/"
install -m 644 "$preload/man/libsshoal_preload.7" "$root/share/man/man7/"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$source/sshoal_spawn.pc.in" >"$root/lib/pkgconfig/sshoal_spawn.pc"
chmod 644 "$root/lib/pkgconfig/sshoal_spawn.pc"
