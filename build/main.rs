//! Does work at build time that every startup would repeat: each part has its own file and writes to `OUT_DIR`, from
//! which the module that uses it includes it.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]
#![expect(clippy::print_stdout, reason = "how a build script speaks to cargo")]

mod built_in;
mod vocabulary;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    built_in::make();
    vocabulary::write()
}
