#!/usr/bin/env bash
# Builds the program that people install: target/dist/agent. Given a directory, puts it there as well.
#
#     benches/dist.sh [DIRECTORY]
#
# It is `cargo build --profile dist`, linked for a fast start (benches/dist-cc): the functions that a start executes lie
# side by side, so that they are few pages to map. Which ones these are is recorded with valgrind while linking. What
# a machine cannot do is said and left out.
set -euo pipefail
cd "$(dirname "$0")/.."

built=${CARGO_TARGET_DIR:-$PWD/target}/dist
host=$(rustc -vV | sed -n 's/^host: //p')
case $host in
*-linux-gnu) ;;
*)
    echo "Linking for a fast start is known on Linux with glibc only: this is the plain profile." >&2
    cargo build --locked --profile dist
    [ $# = 0 ] || install -D "$built/agent" "$1/agent"
    exit
    ;;
esac

if command -v valgrind >/dev/null; then
    mkdir -p "$built"
    rustc --edition 2024 -o "$built/functions" benches/start/functions.rs
    export AGENT_FUNCTIONS=$built/functions
else
    echo "valgrind is not installed: functions stay where the compiler puts them, and a start takes 6 MB more." >&2
fi
cargo rustc --locked --profile dist --bin agent -- -C linker="$PWD/benches/dist-cc"
[ $# = 0 ] || install -D "$built/agent" "$1/agent"
