//! The messages between this program, the keeper of its namespaces, and the init of a command.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::safety::sandbox::SandboxProfile;

/// A path of any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bytes(OsString);

/// A path in a message: as text if it is text, which is a third as long.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPath<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = || WrittenPath::Bytes(self.0.as_bytes().into());
        self.0.to_str().map_or_else(bytes, |text| WrittenPath::Text(text.into())).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match WrittenPath::deserialize(deserializer)? {
            WrittenPath::Text(text) => text.into_owned().into(),
            WrittenPath::Bytes(bytes) => OsString::from_vec(bytes.into_owned()),
        }))
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().to_owned())
    }
}

impl AsRef<Path> for Bytes {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// Paths, for a message.
pub(super) fn convert_paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<Bytes> {
    paths.into_iter().map(|path| Bytes::from(path.as_path())).collect()
}

/// The stage of a run, which its commands share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunStage {
    /// The trees that the `write` profile may write: the workspace first.
    pub written: Vec<Bytes>,
    /// The home directory, which commands see wherever it is.
    pub home: Bytes,
    /// The private directory behind `/tmp`.
    pub temp: Bytes,
    /// Caches, and the directories of the layers above them.
    pub caches: Vec<(Bytes, Bytes)>,
    /// Directories that commands that only read see, although they are not the system's.
    pub shown: Vec<Bytes>,
    /// The directories of the workspace's repository that are below the private ones: they are shown, read-only.
    pub repository: Vec<Bytes>,
    /// Paths that commands can neither read nor write.
    pub masked: Vec<Bytes>,
    /// Files that commands can read and not write.
    pub protected_files: Vec<Bytes>,
    /// Directories that are protected in the same way.
    pub protected_dirs: Vec<Bytes>,
    /// Directories that commands cannot move: those of repositories.
    pub pinned: Vec<Bytes>,
    /// Configurations of repositories, in place of each of which commands find a copy.
    pub configurations: Vec<Bytes>,
    /// The directory of the copies, in that for temporary files.
    pub copies: String,
    /// True if commands share the machine's network.
    pub network: bool,
    /// True if a proxy is to listen on their own.
    pub proxy: bool,
}

/// The view that a command has of the files of a stage. An init that was set up for one view serves all its commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StageView {
    pub profile: SandboxProfile,
    /// Masked beside what the stage masks.
    pub masked: Vec<Bytes>,
    /// Protected beside what the stage protects: files and directories.
    pub protected: Vec<Bytes>,
}

/// A command to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommandOrder {
    pub program: String,
    pub arguments: Vec<String>,
    pub dir: Bytes,
    pub env: Vec<(String, String)>,
    pub view: StageView,
}

/// The account of a set-up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum RoleReport {
    /// The user namespace is there; its ids are still to be mapped from outside.
    Unmapped,
    /// It is done. From the keeper it comes with the socket of an init, and the first one with the proxy's listener.
    Ready,
    /// The step that this system refuses.
    Failed(String),
}

/// A request to the keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KeeperRequest {
    /// Another init, once the command that was just started has had its time.
    Another,
    /// Make the requested one at once, since a command waits for it. It may be on its way already.
    Hurry,
}

/// A request to an init.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum InitRequest {
    /// Run this command. The writing end of its output comes with it.
    Run(CommandOrder),
    /// SIGTERM to all processes of the command.
    Terminate,
    /// End the processes that the command left behind, and report whether there were any.
    Finish,
}

/// The news of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// It could not be started.
    Refused { not_found: bool, why: String },
    /// The command itself ended; processes that it started may still run.
    Ended(CommandEnd),
    /// Everything ended.
    Finished { left_behind: bool },
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// The status as wait(2) reports it.
    pub status: Option<i32>,
    /// True if it exceeded the limit of processes and was ended for that.
    pub flooded: bool,
    /// True if nothing of it is left and its init is unchanged, so that the next command may be sent there.
    pub is_over: bool,
    /// The processor time of its processes, in microseconds.
    pub cpu: u64,
    /// The peak memory of one of its processes, in bytes, if that was more than our own and more than that of the
    /// commands before it in the same init.
    pub peak_memory: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_of_any_bytes_arrives_as_it_was() {
        for (bytes, written) in [("/a \"中".as_bytes(), "\"/a \\\"中\""), (b"/\xff", "[47,255]")] {
            let path = Bytes::from(Path::new(OsStr::from_bytes(bytes)));
            let text = serde_json::to_string(&path).expect("it can be written");
            assert_eq!(text, written);
            assert_eq!(serde_json::from_str::<Bytes>(&text).expect("it can be read"), path);
        }
    }
}
