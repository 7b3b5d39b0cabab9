#!/bin/sh
# Common part of ./demo, ./test and ./bench: checks Rust, installs the Debian packages for the
# build, then runs cargo xtask. Works from any directory and without a terminal.
set -eu

root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
PATH="$PATH:$HOME/.cargo/bin:/usr/local/sbin:/usr/sbin:/sbin"
export PATH

wanted=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' "$root/Cargo.toml")
if ! command -v cargo >/dev/null || ! found=$(rustc --version 2>/dev/null); then
    echo "Rust is missing; Wirestorm needs $wanted or newer. Install it with rustup, then run this again:" >&2
    echo "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y" >&2
    exit 1
fi
found=$(echo "$found" | sed 's/^rustc \([0-9.]*\).*/\1/')
if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
    echo "Rust $found is too old; Wirestorm needs $wanted or newer. Update it, then run this again:" >&2
    echo "    rustup update stable" >&2
    exit 1
fi

missing=
command -v cc >/dev/null || missing="$missing gcc libc6-dev"
command -v clang >/dev/null || missing="$missing clang"
[ -e /usr/include/bpf/bpf_helpers.h ] || missing="$missing libbpf-dev"
if [ -n "$missing" ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "The build needs these Debian packages; install them, then run this again:" >&2
        echo "    sudo apt-get update && sudo apt-get install -y$missing" >&2
        exit 1
    fi
    echo "installing what the build needs:$missing" >&2
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
fi

exec cargo run --quiet --config "$root/.cargo/config.toml" \
    --manifest-path "$root/Cargo.toml" --package xtask -- "$@"
