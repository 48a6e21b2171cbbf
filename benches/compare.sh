#!/usr/bin/env bash
# Times the program that people install beside `curl -N`, aichat, codex (where they are installed) and a bare reference
# client, against a server of our own on loopback, and prints the bars: met or missed.
#
#     benches/compare.sh [ROUNDS]
#
# Figures are medians of interleaved rounds in this one run: compare ratios, not milliseconds.
set -euo pipefail
cd "$(dirname "$0")/.."
benches/dist.sh
exec cargo bench --quiet --bench compare -- target/dist/agent "${1:-15}"
