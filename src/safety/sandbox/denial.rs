//! Detects that the boundary may be the reason that a command failed.
//!
//! The kernel does not say who refused: a command reports `Permission denied`, whatever the reason. So this
//! searches the output of a failed command for such words, says "may", and describes the boundary.

use std::fmt::{self, Write};

use super::{Boundary, MOST_FILE_BYTES, Network, credentials};

/// The part of the boundary that may have caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Refused,
    Network,
    FileSize,
}

/// The words that are looked for, in lower case.
const WORDS: [(&str, Reason); 20] = [
    ("permission denied", Reason::Refused),
    ("operation not permitted", Reason::Refused),
    ("read-only file system", Reason::Refused),
    ("permissionerror", Reason::Refused),
    ("eacces", Reason::Refused),
    ("eperm", Reason::Refused),
    ("could not resolve", Reason::Network),
    ("couldn't resolve", Reason::Network),
    ("name resolution", Reason::Network),
    ("name or service not known", Reason::Network),
    ("unable to resolve", Reason::Network),
    ("network is unreachable", Reason::Network),
    ("connection refused", Reason::Network),
    ("dns error", Reason::Network),
    ("eai_again", Reason::Network),
    ("enotfound", Reason::Network),
    ("failed to lookup address", Reason::Network),
    ("file too large", Reason::FileSize),
    ("file size limit", Reason::FileSize),
    ("efbig", Reason::FileSize),
];

/// A failure that the boundary may have caused. Shown, it is a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial(String);

impl Denial {
    /// Judges the output of a failed command (`signal` names the signal that killed it).
    pub fn judge(output: &str, signal: Option<&str>, plan: &Boundary) -> Option<Self> {
        let output = output.to_lowercase();
        let found = WORDS.iter().find(|(words, _)| output.contains(words)).map(|(_, reason)| *reason);
        // A path under a lid seems not to exist.
        let is_hidden =
            || output.contains("no such file or directory") && credentials::are_named_in(&output, plan);
        let found = found.or_else(|| is_hidden().then_some(Reason::Refused));
        let found = found.or((signal == Some("SIGXFSZ")).then_some(Reason::FileSize));
        match found? {
            Reason::Network if plan.network == Network::Open => None,
            Reason::Refused | Reason::Network => Some(Self::describe(plan)),
            Reason::FileSize => {
                let most = MOST_FILE_BYTES >> 30;
                Some(Self(format!("the sandbox may be the reason: files may not grow beyond {most} GiB in it")))
            }
        }
    }

    fn describe(plan: &Boundary) -> Self {
        let mut also = String::new();
        for dir in &plan.write {
            let _ = write!(also, ", {}", dir.display());
        }
        let network = match &plan.network {
            Network::Open => String::new(),
            Network::Closed => "there is no network but a loopback of their own; ".to_owned(),
            Network::Hosts(hosts) => format!(
                "of the network only {} can be reached, through the proxy that HTTPS_PROXY names; ",
                hosts.join(", ")
            ),
        };
        Self(format!(
            "the sandbox may be the reason: commands write only in the workspace, $TMPDIR{also}; {network}credentials, \
             sockets, terminals and processes of this machine are out of reach"
        ))
    }
}

/// True if the output of a failed command says that it could not write: "read-only" or "permission denied", by their
/// words or by the numbers of the errors.
pub fn says_it_could_not_write(output: &str) -> bool {
    const WORDS: [&str; 8] = [
        "read-only file system",
        "permission denied",
        "operation not permitted",
        "permissionerror",
        "os error 30",
        "os error 13",
        "erofs",
        "eacces",
    ];
    let output = output.to_lowercase();
    WORDS.iter().any(|words| output.contains(words))
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_boundary_can_have_caused_is_laid_to_it() {
        let plan = |is_open: bool| Boundary {
            workspace: "/w".into(),
            write: vec!["/cache".into()],
            network: if is_open { Network::Open } else { Network::Closed },
            home: "/h".into(),
            own: Vec::new(),
            temp_base: "/tmp".into(),
            undone: "/undone".into(),
            caches: "/caches".into(),
            namespaces: false,
        };
        let table = [
            ("touch: cannot touch '/x': Permission denied", None, false, Some("$TMPDIR, /cache;")),
            ("open /x: operation not permitted", None, true, Some("credentials")),
            ("curl: (6) Could not resolve host: example.com", None, false, Some("no network")),
            ("curl: (6) Could not resolve host: example.com", None, true, None),
            ("", Some("SIGXFSZ"), false, Some("8 GiB")),
            ("error[E0308]: mismatched types", None, false, None),
        ];
        for (output, signal, network, expected) in table {
            let denial = Denial::judge(output, signal, &plan(network)).map(|denial| denial.to_string());
            match (denial, expected) {
                (Some(said), Some(part)) => assert!(said.contains(part), "{output}: {said}"),
                (said, expected) => assert_eq!(said.as_deref(), expected, "{output}"),
            }
        }
    }
}
