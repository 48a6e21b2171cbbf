//! The caches that builds write in a home directory. Commands see them, and write to a separate layer above them, which
//! is kept for each workspace: no command can put anything into the cache that other projects use.

use std::fs;
use std::path::{Path, PathBuf};

use super::Boundary;

/// In a home directory.
const IN_HOME: &[&str] = &[
    // rust
    ".cargo/registry",
    ".cargo/git",
    // go
    "go/pkg",
    ".cache/go-build",
    // java
    ".m2/repository",
    ".gradle/caches",
    ".gradle/wrapper",
    // node
    ".npm",
    ".cache/yarn",
    ".cache/pnpm",
    ".local/share/pnpm",
    ".cache/node-gyp",
    ".bun/install/cache",
    // python
    ".cache/pip",
    ".cache/uv",
    ".cache/pypoetry",
    // others
    ".cache/pre-commit",
    ".cache/ccache",
    ".ccache",
    ".bundle/cache",
    ".nuget/packages",
    ".terraform.d/plugin-cache",
];

/// A cache, and the directory of the layer above it.
pub(super) struct Cache {
    pub real: PathBuf,
    /// Contains `upper` and `work`, as an overlay needs them.
    pub layer: PathBuf,
}

/// The caches that exist, with their layers, which are created if they are missing.
pub(super) fn find_caches(plan: &Boundary) -> Vec<Cache> {
    // Writable directories need no layer; the kernel reads `,` and `:` as separators of options.
    let is_plain = |path: &Path| path.to_str().is_some_and(|path| !path.contains([',', ':', '\\', '"']));
    let written = plan.list_writable();
    let is_wanted =
        |real: &PathBuf| real.is_dir() && is_plain(real) && !written.iter().any(|tree| real.starts_with(tree));
    let caches = IN_HOME.iter().map(|name| (name, plan.home.join(name))).filter(|(_, real)| is_wanted(real));
    caches
        .filter_map(|(name, real)| {
            let layer = plan.caches.join(name.replace('/', "-"));
            let is_made = ["upper", "work"].iter().all(|part| fs::create_dir_all(layer.join(part)).is_ok());
            (is_made && is_plain(&layer)).then_some(Cache { real, layer })
        })
        .collect()
}
