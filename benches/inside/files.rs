//! Completions of `@` over 100,000 paths: each has to be there within 50 ms.

use agent::facade::faces::chat::fuzzy;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

const FILES: usize = 100_000;

/// Letters that few, many and no paths have.
#[divan::bench(args = ["replmod", "s", "srctest", "component42index", "zzzz"])]
fn files_for_letters(bencher: Bencher<'_, '_>, letters: &str) {
    let paths = paths();
    bencher.counter(ItemsCount::new(FILES)).bench(|| fuzzy::find_best(black_box(letters), &paths, 16).len());
}

fn paths() -> Vec<Box<str>> {
    const PARTS: [&str; 8] = ["src", "packages", "repl", "components", "tests", "internal", "generated", "docs"];
    const NAMES: [&str; 5] = ["index.tsx", "mod.rs", "component_test.go", "README.md", "long-name-of-a-module.py"];
    let path = |number: usize| {
        let part = |shift: usize| PARTS[(number >> shift) % PARTS.len()];
        format!("{}/{}/{}{number}/{}", part(0), part(3), part(6), NAMES[number % NAMES.len()]).into()
    };
    (0..FILES).map(path).collect()
}
