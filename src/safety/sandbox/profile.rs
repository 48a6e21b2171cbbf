//! The profile for `sandbox-exec`. The last matching rule decides, so denials come after permissions.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::places::Places;
use super::plan::{Boundary, Network, SandboxProfile, resolve_path};

/// The profile's text. `hidden` can neither be read nor written.
pub(super) fn write_profile(
    plan: &Boundary,
    temp: &Path,
    places: &[Arc<Places>],
    hidden: &[PathBuf],
    walls: SandboxProfile,
) -> String {
    let mut text = "(version 1)\n(allow default)\n(deny file-write*)\n".to_owned();
    let mut rule = |verdict: &str, path: &Path| {
        let _ = writeln!(text, "({verdict} (subpath {}))", quote_path(path));
    };
    let written: Vec<PathBuf> = plan.write.iter().map(|dir| resolve_path(dir)).collect();
    let trees = [plan.workspace.as_path()].into_iter().chain(written.iter().map(PathBuf::as_path));
    for dir in trees.filter(|_| walls == SandboxProfile::Write).chain([temp]) {
        rule("allow file-write*", dir);
    }
    // `.git` itself may be a directory, and every commit writes to most of it.
    let watched = places.iter().flat_map(|places| places.files.iter().chain(&places.dirs));
    for path in watched.filter(|path| *path != Path::new(".git")) {
        rule("deny file-write*", &plan.workspace.join(path));
    }
    for path in hidden {
        rule("deny file-read* file-write*", path);
    }
    for device in ["/dev/null", "/dev/zero", "/dev/dtracehelper"] {
        let _ = writeln!(text, "(allow file-write* (literal {}))", quote_path(Path::new(device)));
    }
    text += "(deny signal)\n(allow signal (target same-sandbox))\n(deny network*)\n";
    if plan.network == Network::Open {
        text += "(allow network* (remote ip))\n(allow network* (local ip))\n";
        text += "(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n";
    }
    text
}

fn quote_path(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::sandbox::places;

    #[test]
    fn what_is_refused_comes_last() {
        let [workspace, home, temp] = ["/Users/x/a \"project\"", "/Users/x", "/tmp"].map(Path::new);
        let write = vec!["/Users/x/.cache/tool".into()];
        let plan = Boundary { write, ..Boundary::around(workspace, home, temp) };
        let written = |walls| {
            write_profile(
                &plan,
                Path::new("/tmp/agent-1"),
                &places::find_places(&plan),
                &["/Users/x/.ssh".into()],
                walls,
            )
        };
        let text = written(SandboxProfile::Write);
        let at = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line} is missing in\n{text}"));
        assert!(at("(deny file-write*)\n") < at("(allow file-write* (subpath \"/Users/x/a \\\"project\\\"\"))"));
        assert!(at("(allow file-write* (subpath \"/Users/x/.cache/tool\"))") < at(".git/hooks\"))"));
        at("(deny file-read* file-write* (subpath \"/Users/x/.ssh\"))");
        at("(deny network*)");
        assert!(!text.contains("allow network"));
        assert!(!written(SandboxProfile::Read).contains("(allow file-write* (subpath \"/Users"));
    }
}
