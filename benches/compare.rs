//! Whole processes, timed.

fn main() {}
