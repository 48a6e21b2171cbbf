//! Makes at build time what would cost every start: one file a matter, each written to `OUT_DIR`, where the module that
//! uses it includes it.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

mod built_in;

fn main() {
    println!("cargo::rerun-if-changed=build");
    built_in::make();
}
