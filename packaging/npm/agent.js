#!/usr/bin/env node
// Starts the program of this system, which is a package of its own: nothing is downloaded, no script runs at installation.
"use strict";
const { spawnSync } = require("node:child_process");

const name = `agent-cli-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/${process.platform === "win32" ? "agent.exe" : "agent"}`);
} catch {
  console.error(`agent: there is no program for ${process.platform} on ${process.arch}, or ${name} was left out (npm install --include=optional)`);
  process.exit(1);
}
// The terminal's signals reach the program by themselves; this process waits for its end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
const ended = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error(`agent: ${ended.error.message}`);
  process.exit(1);
}
process.exit(ended.status ?? 128 + require("node:os").constants.signals[ended.signal]);
