//! Detects that the boundary may be the reason that a command failed.
//!
//! The kernel does not say who refused: a command reports `Permission denied`, whatever the reason. So this
//! searches the output of a failed command for such words, says "may", and describes the boundary. Only whole words
//! count: `ENOTFOUND` is an error of name resolution, `ModuleNotFoundError` is not.

use std::path::PathBuf;

use super::aside::MovedAside;
use super::{Boundary, MOST_FILE_BYTES, Network, credentials};

/// The part of the boundary that may have caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Refused,
    Network,
    FileSize,
}

/// The words that are looked for, in lower case, separated by `|`.
const WORDS: [(Reason, &str); 3] = [
    (
        Reason::Refused,
        "permission denied|operation not permitted|read-only file system|permissionerror|eacces|eperm|erofs|\
         os error 13|os error 30|device or resource busy|ebusy|os error 16",
    ),
    (
        Reason::Network,
        "could not resolve|couldn't resolve|name resolution|name or service not known|unable to resolve|\
         network is unreachable|connection refused|dns error|eai_again|enotfound|failed to lookup address",
    ),
    (Reason::FileSize, "file too large|file size limit|efbig"),
];

/// The evidence that walls stopped a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It made this under protected names.
    Making(Vec<MovedAside>),
    /// It could not change these protected paths, absolute, which its output names.
    Changing(Vec<PathBuf>),
    /// It could not write, in walls that allow no writing.
    Writing,
    /// The sandbox knows that it stopped or undid something.
    Known,
    /// It speaks of the network like one that reaches none.
    Network,
    /// Its output says so. The author of the program may have chosen the words.
    Claimed,
}

/// The sandbox's possible part in the end of a command.
#[derive(Debug, Clone)]
pub struct Denied {
    /// As a remark for the model, without its full stop.
    pub why: String,
    pub how: Refused,
}

/// The protected paths that the output of a failed command names, relative to the workspace.
pub(super) fn find_named<'a>(output: &str, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_named = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        output.match_indices(&*name).any(|(at, _)| {
            let (before, after) = (&output[..at], &output[at + name.len()..]);
            (!before.ends_with(is_part) || before.ends_with('/'))
                && (after.starts_with('/') || !after.starts_with(is_part))
        })
    };
    paths.into_iter().filter(is_named).cloned().collect()
}

/// The part that the boundary may have in a failure, judging by the output of the command (`signal` names the signal that
/// killed it).
pub fn explain_denial(output: &str, signal: Option<&str>, plan: &Boundary) -> Option<Denied> {
    let output = output.to_lowercase();
    let found = WORDS.iter().find(|(_, words)| contains_one(&output, words)).map(|(reason, _)| *reason);
    // A path under a lid seems not to exist.
    let is_hidden = || output.contains("no such file or directory") && credentials::are_named_in(&output, plan);
    let found = found.or_else(|| is_hidden().then_some(Reason::Refused));
    let is_too_large = signal == Some("SIGXFSZ");
    let (why, how) = match found.or(is_too_large.then_some(Reason::FileSize))? {
        Reason::Network if plan.network == Network::Open => return None,
        Reason::Network => (describe_boundary(plan), Refused::Network),
        Reason::Refused => (describe_boundary(plan), Refused::Claimed),
        Reason::FileSize => {
            let most = MOST_FILE_BYTES >> 30;
            let why = format!("the sandbox may be the reason: files may not grow beyond {most} GiB in it");
            (why, if is_too_large { Refused::Known } else { Refused::Claimed })
        }
    };
    Some(Denied { why, how })
}

fn describe_boundary(plan: &Boundary) -> String {
    let also = plan.name_further();
    let network = match &plan.network {
        Network::Open => String::new(),
        Network::Closed => "there is no network but a loopback of their own; ".to_owned(),
        Network::Hosts(hosts) => format!(
            "of the network only {} can be reached, through the proxy that HTTPS_PROXY names; ",
            hosts.join(", ")
        ),
    };
    format!(
        "the sandbox may be the reason: commands write only in the workspace, $TMPDIR{also}; {network}credentials, \
         sockets, terminals and processes of this machine are out of reach"
    )
}

/// True if the output of a failed command says that it could not write: "read-only" or "permission denied", by their
/// words or by the numbers of the errors.
pub fn says_it_could_not_write(output: &str) -> bool {
    let output = output.to_lowercase();
    WORDS.iter().any(|(reason, words)| *reason == Reason::Refused && contains_one(&output, words))
}

/// True if one of the words stands in the text as a whole word.
fn contains_one(text: &str, words: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let stands = |(at, word): (usize, &str)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    };
    words.split('|').any(|word| text.match_indices(word).any(stands))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn protected_paths_are_found_in_what_programs_say_of_them() {
        let paths = ["AGENTS.md", "sub/AGENTS.md", ".vscode", ".git/hooks"].map(PathBuf::from);
        let table: [(&str, &[&str]); 5] = [
            ("rm: cannot remove 'sub/AGENTS.md': Device or resource busy", &["AGENTS.md", "sub/AGENTS.md"]),
            ("sh: 1: cannot create .vscode/x.json: Read-only file system", &[".vscode"]),
            ("[Errno 30] Read-only file system: '/w/AGENTS.md'", &["AGENTS.md"]),
            ("x.AGENTS.md, AGENTS.mdx and .vscode-x are others", &[]),
            ("touch: cannot touch '/w/.git/hooks/a'", &[".git/hooks"]),
        ];
        for (output, expected) in table {
            let named = find_named(output, &paths);
            assert_eq!(named, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{output}");
        }
    }

    #[test]
    fn only_what_the_boundary_can_have_caused_is_laid_to_it() {
        let plan = |is_open: bool| Boundary {
            write: vec!["/cache".into()],
            network: if is_open { Network::Open } else { Network::Closed },
            ..Boundary::around(Path::new("/w"), Path::new("/h"), Path::new("/tmp"))
        };
        let table = [
            ("touch: cannot touch '/x': Permission denied", None, false, Some("$TMPDIR, /cache;")),
            ("open /x: operation not permitted", None, true, Some("credentials")),
            ("curl: (6) Could not resolve host: example.com", None, false, Some("no network")),
            ("curl: (6) Could not resolve host: example.com", None, true, None),
            ("getaddrinfo ENOTFOUND example.com", None, false, Some("no network")),
            ("ModuleNotFoundError: No module named 'x'", None, false, None),
            ("FileNotFoundError: [Errno 2] No such file or directory: 'x'", None, false, None),
            ("in check_eacces: test_permissionerror_is_kept FAILED", None, false, None),
            ("[Errno 13] Permission denied: '/x'", None, false, Some("$TMPDIR")),
            ("", Some("SIGXFSZ"), false, Some("8 GiB")),
            ("error[E0308]: mismatched types", None, false, None),
        ];
        for (output, signal, network, expected) in table {
            let denial = explain_denial(output, signal, &plan(network));
            match (denial, expected) {
                (Some(said), Some(part)) => assert!(said.why.contains(part), "{output}: {}", said.why),
                (said, expected) => assert_eq!(said.map(|said| said.why).as_deref(), expected, "{output}"),
            }
        }
    }
}
