//! The caches that builds write in a home directory. Commands see them, and write to a separate layer above them, which
//! is kept for each workspace: no command can put anything into the cache that other projects use.

use std::fs;

use super::messages::Bytes;
use crate::safety::sandbox::Boundary;

/// In a home directory: of Rust, Go, Java, Node, Python and others.
const IN_HOME: &str = "
.cargo/registry .cargo/git
go/pkg .cache/go-build
.m2/repository .gradle/caches .gradle/wrapper
.npm .cache/yarn .cache/pnpm .local/share/pnpm .cache/node-gyp .bun/install/cache
.cache/pip .cache/uv .cache/pypoetry
.cache/pre-commit .cache/ccache .ccache .bundle/cache .nuget/packages .terraform.d/plugin-cache
";

/// The caches that exist, each with the directory of the layer above it, which is created if it is missing. That contains
/// `upper` and `work`, as an overlay needs them.
pub(super) fn find_caches(plan: &Boundary) -> Vec<(Bytes, Bytes)> {
    // Writable directories need no layer.
    let written = plan.list_writable();
    let caches = IN_HOME.split_whitespace().filter_map(|name| {
        let real = plan.home.join(name);
        let is_wanted = real.is_dir() && !written.iter().any(|tree| real.starts_with(tree));
        let layer = is_wanted.then(|| plan.caches.join(name.replace('/', "-")))?;
        let is_made = ["upper", "work"].iter().all(|part| fs::create_dir_all(layer.join(part)).is_ok());
        is_made.then(|| (Bytes::from(real.as_path()), Bytes::from(layer.as_path())))
    });
    caches.collect()
}
