//! Everything that a workspace brings along to configure or instruct, by path and hash: made once at startup, limited
//! in size, and the only way to the content. Files that are not in it, or have changed since, do not exist.
//!
//! It has only regular files. A link counts as its target, if that is in the same directory; one that leads out is
//! refused and named.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::folders::{PROJECT_FOLDER, SHARED_SKILLS};
use crate::base::digest::write_hex;
use crate::files::file_name;
use crate::files::regular::{Links, read_bytes};
use crate::files::workspace::Workspace;

/// A workspace that brings more than this is not read to the end, and so not used.
const MOST_ENTRIES: usize = 5_000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;
const LONGEST: Duration = Duration::from_secs(10);
/// A file that is larger or deeper is not part of it.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;
const DEEPEST: usize = 16;
/// The file in which other agents configure servers of tools.
const SERVERS: &str = ".mcp.json";

/// The content that a workspace brings along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Lowest first: the nearest wins, so it is last.
    pub(super) layers: Vec<BroughtDir>,
    /// Files that are not part of it, with the reasons.
    pub(super) refused: Vec<String>,
}

/// The kind of a directory's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManifestPart {
    /// `.agent`: configuration, prompts and skills.
    Config,
    /// Only skills.
    Skills,
    /// Only `.mcp.json`.
    Servers,
}

/// One directory of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BroughtDir {
    pub part: ManifestPart,
    /// Absolute, links followed.
    pub dir: PathBuf,
    /// The files, by the path below the directory.
    pub files: BTreeMap<PathBuf, BroughtFile>,
    /// The hash of all files and their names, in hexadecimal.
    pub hash: String,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BroughtFile {
    /// Absolute, links followed.
    real: PathBuf,
    hash: [u8; 32],
    pub size: u64,
}

impl Manifest {
    /// The directories that the workspace brings along, except those that are the user's: `own` finds these, which takes
    /// system calls, and is called only if there is something to compare.
    pub fn find_brought(workspace: &Workspace, own: impl FnOnce() -> Vec<PathBuf>) -> Self {
        let own = LazyCell::new(own);
        let mut refused = Vec::new();
        let mut found = list_places(workspace, |dir| own.contains(dir), &mut refused);
        // A directory that is a link to another counts as that one.
        let mut at = 0;
        let dirs: Vec<PathBuf> = found.iter().map(|(_, dir)| dir.clone()).collect();
        found.retain(|(part, dir)| {
            at += 1;
            *part == ManifestPart::Servers || !dirs[at..].contains(dir)
        });
        let own = if dirs.is_empty() { [].iter() } else { own.iter() };
        let all = dirs.into_iter().chain(own.cloned()).collect();
        let mut making =
            Making { refused, entries: 0, bytes: 0, began: Instant::now(), all, files: BTreeMap::new() };
        let layers = found.into_iter().filter_map(|(part, dir)| making.layer(part, dir));
        // An empty folder brings nothing.
        let layers =
            layers.filter(|layer| layer.part == ManifestPart::Config || !layer.files.is_empty()).collect();
        Self { layers, refused: making.refused }
    }

    /// The directories that are brought along, in the order of their layers.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.layers.iter().filter(|layer| layer.part != ManifestPart::Servers).map(|layer| layer.dir.as_path())
    }

    /// Those of them that are config directories.
    pub fn config_dirs(&self) -> impl Iterator<Item = &Path> {
        self.layers.iter().filter(|layer| layer.part == ManifestPart::Config).map(|layer| layer.dir.as_path())
    }

    /// The directories of skills in them, in the same order.
    pub fn skill_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let skills = self.layers.iter().filter_map(|layer| match layer.part {
            ManifestPart::Config => Some(layer.dir.join("skills")),
            ManifestPart::Skills => Some(layer.dir.clone()),
            ManifestPart::Servers => None,
        });
        skills.filter(|dir| self.files_below(dir).next().is_some())
    }

    /// Every `.mcp.json` of it, from the farthest directory to the nearest.
    pub fn server_files(&self) -> impl Iterator<Item = PathBuf> {
        let servers = self.layers.iter().filter(|layer| layer.part == ManifestPart::Servers);
        servers.map(|layer| layer.dir.join(SERVERS))
    }

    /// True if there is anything that the user must be asked about.
    pub fn brings_anything(&self) -> bool {
        !self.layers.is_empty()
    }

    /// The files below a directory, as absolute paths, sorted.
    pub fn files_below(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        let layer = self.layer_of(dir);
        let files = layer.into_iter().flat_map(|layer| layer.files.keys().map(|file| layer.dir.join(file)));
        files.filter(move |file| file.starts_with(dir))
    }

    /// True if a file is part of it.
    pub fn has(&self, path: &Path) -> bool {
        let layer = self.layer_of(path);
        layer.is_some_and(|layer| {
            path.strip_prefix(&layer.dir).is_ok_and(|inside| layer.files.contains_key(inside))
        })
    }

    /// The content of a file, if it has not changed since the manifest was made; `None` if it is not part of it.
    ///
    /// # Errors
    /// A message that is shown after the path: the content has changed, or has more than `most` bytes.
    pub fn read(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
        let Some(layer) = self.layer_of(path) else { return Ok(None) };
        let Some(file) = path.strip_prefix(&layer.dir).ok().and_then(|inside| layer.files.get(inside)) else {
            return Ok(None);
        };
        if file.size > most {
            return Err(format!("is longer than {most} bytes"));
        }
        let is_there = crate::files::canonicalize(&file.real).is_ok_and(|real| real == file.real);
        let bytes = read_bytes(&file.real, Links::Refuse, file.size).ok().flatten().filter(|_| is_there);
        let same = bytes.filter(|bytes| <[u8; 32]>::from(Sha256::digest(bytes)) == file.hash);
        same.map(Some).ok_or_else(|| "has changed since it was looked at, and is not used".to_owned())
    }

    fn layer_of(&self, path: &Path) -> Option<&BroughtDir> {
        let layers = self.layers.iter().filter(|layer| path.starts_with(&layer.dir));
        layers.max_by_key(|layer| (layer.dir.as_os_str().len(), layer.part != ManifestPart::Servers))
    }
}

/// The possible places, with links followed, from the farthest to the nearest.
fn list_places(
    workspace: &Workspace,
    is_own: impl Fn(&PathBuf) -> bool,
    refused: &mut Vec<String>,
) -> Vec<(ManifestPart, PathBuf)> {
    let top = workspace.git_root().unwrap_or(workspace.root());
    let mut dirs: Vec<&Path> = workspace.dirs_up_to_git_root().collect();
    dirs.reverse();
    let parts = SHARED_SKILLS
        .map(|folder| (folder, ManifestPart::Skills))
        .into_iter()
        .chain([(PROJECT_FOLDER, ManifestPart::Config)]);
    let mut found = Vec::new();
    for dir in dirs {
        for (folder, part) in parts.clone() {
            let named = dir.join(folder);
            // Most workspaces have none of them, which one system call shows; following links takes one for each
            // directory.
            let exists = named.symlink_metadata().is_ok();
            let Some(real) = exists.then(|| crate::files::canonicalize(&named).ok()).flatten() else { continue };
            if !real.is_dir() || is_own(&real) {
                continue;
            }
            // A directory that contains the workspace, or is elsewhere, does not belong to the workspace.
            let is_of_project = real.starts_with(top) && !workspace.root().starts_with(&real);
            if real == named || is_of_project {
                found.push((part, real));
            } else {
                refused.push(format!("{} is a link out of the project and is not used", show_path(&named)));
            }
        }
        if dir.join(SERVERS).symlink_metadata().is_ok() {
            found.push((ManifestPart::Servers, dir.to_path_buf()));
        }
    }
    found
}

struct Making {
    refused: Vec<String>,
    entries: usize,
    bytes: u64,
    began: Instant,
    /// All directories that are brought along, and the user's own.
    all: Vec<PathBuf>,
    /// The files of the directory that is being read.
    files: BTreeMap<PathBuf, BroughtFile>,
}

impl Making {
    fn layer(&mut self, part: ManifestPart, dir: PathBuf) -> Option<BroughtDir> {
        let read = match part {
            ManifestPart::Servers => self.take(dir.join(SERVERS), PathBuf::from(SERVERS)),
            ManifestPart::Config | ManifestPart::Skills => self.descend(part, &dir, Path::new(""), 0),
        };
        let files = std::mem::take(&mut self.files);
        if let Err(why) = read {
            self.refused.push(format!("{} is not used: {why}", show_path(&dir)));
            return None;
        }
        let mut hasher = Sha256::new();
        for (name, file) in &files {
            // Two files may swap their links, so the target of a link is part of what was agreed to.
            let target = file.real.strip_prefix(&dir).unwrap_or(&file.real);
            for part in [name.as_os_str().as_encoded_bytes(), target.as_os_str().as_encoded_bytes(), &file.hash] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        Some(BroughtDir { part, hash: write_hex(&hasher.finalize()), dir, files })
    }

    fn descend(&mut self, part: ManifestPart, dir: &Path, inside: &Path, depth: usize) -> Result<(), String> {
        let here = dir.join(inside);
        let listing = match fs::read_dir(&here) {
            Ok(listing) => listing,
            Err(error) => {
                self.refused.push(format!("{} cannot be read: {error}", show_path(&here)));
                return Ok(());
            }
        };
        let mut entries = Vec::new();
        for entry in listing.filter_map(Result::ok) {
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Err(format!("the workspace brings more than {MOST_ENTRIES} files"));
            }
            if self.began.elapsed() > LONGEST {
                return Err(format!("reading it takes longer than {} s", LONGEST.as_secs()));
            }
            if let Ok(kind) = entry.file_type() {
                entries.push((entry.file_name(), kind));
            }
        }
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in entries {
            let relative = inside.join(name);
            if kind.is_symlink() {
                self.link(part, dir, relative)?;
            } else if !kind.is_dir() {
                self.take(dir.join(&relative), relative)?;
            } else if depth < DEEPEST {
                self.descend(part, dir, &relative, depth + 1)?;
            } else {
                self.refused.push(format!("{} is not used: it lies too deep", show_path(&dir.join(relative))));
            }
        }
        Ok(())
    }

    fn link(&mut self, part: ManifestPart, dir: &Path, relative: PathBuf) -> Result<(), String> {
        let link = dir.join(&relative);
        let Ok(real) = crate::files::canonicalize(&link) else {
            self.refused.push(format!("{} is a link to nothing", show_path(&link)));
            return Ok(());
        };
        if real.starts_with(dir) && !real.is_dir() {
            return self.take(real, relative);
        }
        // A skill that is in another directory of skills is read there.
        let is_of_skills = part == ManifestPart::Skills || relative.starts_with("skills");
        if !(is_of_skills && real.is_dir() && self.all.iter().any(|other| real.starts_with(other))) {
            let why = if real.starts_with(dir) { "a link to a directory" } else { "a link out of its directory" };
            self.refused.push(format!("{} is {why} and is not used", show_path(&link)));
        }
        Ok(())
    }

    fn take(&mut self, real: PathBuf, relative: PathBuf) -> Result<(), String> {
        match read_bytes(&real, Links::Refuse, LARGEST_FILE) {
            Ok(Some(bytes)) => {
                let size = bytes.len() as u64;
                self.bytes += size;
                if self.bytes > MOST_BYTES {
                    return Err(format!("the workspace brings more than {} MiB", MOST_BYTES / 1024 / 1024));
                }
                self.files.insert(relative, BroughtFile { real, hash: Sha256::digest(&bytes).into(), size });
            }
            Ok(None) => {}
            Err(why) => self.refused.push(format!("{} is not used: it {why}", show_path(&real))),
        }
        Ok(())
    }
}

/// A path as one word on one line.
pub(super) fn show_path(path: &Path) -> String {
    file_name::quote(path).into_owned()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::{MOST_ENTRIES, Manifest};
    use crate::files::workspace::Workspace;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(dir.path()).expect("it exists").join("repository");
        fs::create_dir_all(root.join(".git")).expect("made");
        (dir, root)
    }

    fn of(root: &Path) -> Manifest {
        Manifest::find_brought(&Workspace::open(root).expect("a workspace"), Vec::new)
    }

    #[test]
    fn every_directory_up_to_the_top_is_looked_at_but_the_persons_own() {
        let (_dir, root) = place();
        for path in [".agents/skills/a/SKILL.md", "sub/.claude/skills/b/SKILL.md", "sub/.agent/agent.yaml"] {
            write(&root, path, "text");
        }
        // A skill of another directory of skills is read there, and no reason to warn.
        symlink("../../../.agents/skills/a", root.join("sub/.claude/skills/a")).expect("a link");
        fs::create_dir_all(root.join(".claude/skills/empty")).expect("made");
        symlink("../.agents/skills", root.join("sub/.agents")).expect("a link");
        let workspace = Workspace::open(&root.join("sub")).expect("a workspace");
        let dirs = |own: &[PathBuf]| {
            let manifest = Manifest::find_brought(&workspace, || own.to_vec());
            let dirs = manifest.dirs().map(|dir| dir.strip_prefix(&root).expect("inside").display().to_string());
            dirs.collect::<Vec<_>>()
        };
        assert_eq!(dirs(&[]), [".agents/skills", "sub/.claude/skills", "sub/.agent"]);
        let own = [root.join(".agents/skills")];
        assert_eq!(dirs(&own), ["sub/.claude/skills", "sub/.agent"]);
        for own in [&own[..], &[]] {
            assert_eq!(Manifest::find_brought(&workspace, || own.to_vec()).refused, Vec::<String>::new());
        }
    }

    #[test]
    fn links_out_are_refused_and_named_and_links_inside_are_the_files_they_lead_to() {
        let (dir, root) = place();
        write(dir.path(), "outside/prompts/system/v1.0.md", "evil");
        write(&root, "secret", "key");
        write(&root, ".agent/agents/real.yaml", "description: d\n");
        for (link, target) in [
            ("agents/inside.yaml", "real.yaml"),
            ("prompts", "../../outside/prompts"),
            ("settings", "agents"),
            ("stolen", "../secret"),
            ("device", "/dev/zero"),
            ("nowhere", "nothing"),
        ] {
            symlink(target, root.join(".agent").join(link)).expect("a link");
        }
        nix::unistd::mkfifo(&root.join(".agent/pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let manifest = of(&root);
        let files: Vec<PathBuf> = manifest.files_below(&root.join(".agent")).collect();
        assert_eq!(files, ["inside.yaml", "real.yaml"].map(|name| root.join(".agent/agents").join(name)));
        let read = |path: &str| manifest.read(&root.join(".agent").join(path), 100);
        assert_eq!(read("agents/inside.yaml"), Ok(Some(b"description: d\n".to_vec())));
        for path in
            ["prompts/system/v1.0.md", "settings/real.yaml", "stolen", "device", "pipe", "agents/../stolen"]
        {
            assert_eq!(read(path), Ok(None), "{path}");
        }
        let refused = manifest.refused.join("\n");
        for named in [
            "prompts is a link out",
            "settings is a link to a directory",
            "stolen is a link out",
            "device is a link out",
            "nowhere is a link to nothing",
            "pipe is not used: it is not a regular file",
        ] {
            assert!(refused.contains(named), "{named}: {refused}");
        }
    }

    #[test]
    fn a_config_directory_that_is_the_whole_disk_is_refused_at_once() {
        for target in ["/", ".", "..", "/etc"] {
            let (_dir, root) = place();
            symlink(target, root.join(".agent")).expect("a link");
            let manifest = of(&root);
            assert!(!manifest.brings_anything(), "{target}");
            assert!(manifest.refused.join("").contains("a link out of the project"), "{:?}", manifest.refused);
        }
    }

    #[test]
    fn what_has_changed_or_came_later_does_not_exist() {
        let (dir, root) = place();
        write(&root, ".agent/agent.yaml", "limits: {}\n");
        write(&root, ".agent/prompts/system/v1.0.md", "calm");
        write(dir.path(), "outside/system/v1.0.md", "calm");
        let manifest = of(&root);
        let read = |path: &str| manifest.read(&root.join(".agent").join(path), 100);
        assert!(read("agent.yaml").is_ok_and(|text| text.is_some()));
        write(&root, ".agent/agent.yaml", "limits: []\n");
        write(&root, ".agent/tools/new.yaml", "");
        let changed = read("agent.yaml").expect_err("it has changed");
        assert!(changed.contains("has changed"), "{changed}");
        assert_eq!(read("tools/new.yaml"), Ok(None));
        fs::rename(root.join(".agent/prompts"), root.join("moved")).expect("moved");
        symlink(dir.path().join("outside"), root.join(".agent/prompts")).expect("a link");
        assert!(read("prompts/system/v1.0.md").is_err(), "also where a link leads to the same content");
    }

    #[test]
    fn more_than_anybody_writes_is_not_looked_at_to_the_end() {
        let (_dir, root) = place();
        write(&root, ".claude/skills/a/SKILL.md", "text");
        for number in 0..=MOST_ENTRIES {
            write(&root, &format!(".agent/skills/many/{number}"), "");
        }
        fs::File::create(root.join(".claude/skills/a/huge"))
            .and_then(|file| file.set_len(10 << 30))
            .expect("sparse");
        let manifest = of(&root);
        let dirs: Vec<&Path> = manifest.dirs().collect();
        assert_eq!(dirs, [root.join(".claude/skills")], "{:?}", manifest.refused);
        let refused = manifest.refused.join("\n");
        assert!(refused.contains("a/huge is not used: it is longer than 16 MiB"), "{refused}");
        assert!(refused.contains(&format!("more than {MOST_ENTRIES} files")), "{refused}");
    }
}
