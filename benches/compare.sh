#!/usr/bin/env bash
# Times the whole program beside `curl -N`, aichat (where it is installed) and a bare reference client, against a
# server of our own on loopback, and prints the bars: met or missed.
#
#     benches/compare.sh [ROUNDS]
#
# Needs a Rust toolchain; curl and aichat are used if they are there. Figures are medians of interleaved rounds in
# this one run: compare ratios, not milliseconds.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo bench --quiet --profile dist --bench compare -- "$@"
