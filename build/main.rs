//! Makes at build time what would cost every start: one file a matter, each written to `OUT_DIR`, where the module that
//! uses it includes it.

mod vocabulary;

#[expect(clippy::print_stdout, reason = "that is how cargo is told")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build");
    vocabulary::write()?;
    Ok(())
}
