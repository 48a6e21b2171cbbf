//! The view of a command that only reads: the workspace, the system, and what programs on `PATH` consist of, read-only.
//! The rest of homes and other projects are not hidden but absent, so it matters nothing by which way they are named.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::messages::{Bytes, RunStage, convert_paths};
use super::mounts::{SHARED as SHARED_MEMORY, TEMP, clone_all, cover, is_read_only, put_back, read_only};
use crate::safety::sandbox::Boundary;
use crate::safety::sandbox::git_config::{find_setting, keep_harmless};
use crate::safety::sandbox::places::{find_repository, has_head};
use crate::safety::sandbox::plan::resolve_path;

/// The directories at the root that are the system's. Whatever else is there belongs to somebody.
const SYSTEM: [&str; 18] = [
    "bin", "boot", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin",
    "sys", "tmp", "usr", "var",
];

/// A directory among them that everybody uses.
const SHARED: &str = "/var/tmp";

/// Toolchains in a home, whether or not `PATH` names them: launchers find them from there.
const TOOLCHAINS: &str = "
.cargo/bin .rustup .pyenv .rbenv .nodenv .nvm .volta/bin .volta/tools .asdf .sdkman/candidates .ghcup .opam .juliaup
.local/bin .local/lib .local/share/mise .local/share/uv .local/share/fnm .local/share/pipx .bun/bin .deno/bin .dotnet
go/bin go/sdk .goenv miniconda3 miniforge3 anaconda3 .nix-profile .local/state/nix
";

/// Names of directories of programs, which belong to the directory above.
const PROGRAM_DIRS: [&str; 3] = ["bin", "sbin", "shims"];

/// The directories to be shown, sorted, none inside another.
pub(super) fn find_shown(plan: &Boundary) -> Vec<Bytes> {
    let home = resolve_path(&plan.home);
    let written = plan.list_writable();
    let is_written = |path: &Path| written.iter().any(|tree| path.starts_with(tree));
    let is_shown = |dir: &PathBuf| dir.is_dir() && !home.starts_with(dir) && !is_written(dir);
    let usual = TOOLCHAINS.split_whitespace().map(|name| home.join(name));
    // What commands write never says what is shown.
    let named = plan.programs.iter().filter(|dir| !is_written(dir) && !is_of_system(dir, &home));
    let programs = named.flat_map(|dir| find_parts(dir, &home));
    let mut shown: Vec<PathBuf> =
        usual.chain(programs).chain(find_repository(&plan.workspace)).filter(is_shown).collect();
    shown.sort();
    shown.dedup_by(|later, earlier| later.starts_with(earlier));
    convert_paths(&shown)
}

/// The directories of the workspace's repository that lie below a private one. Anybody can put a `.git` there: only what
/// is this user's and a repository counts, and never the private directory itself.
pub(super) fn find_covered_repository(plan: &Boundary) -> Vec<Bytes> {
    let user = rustix::process::geteuid().as_raw();
    let is_own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir() && entry.uid() == user);
    let is_repository = |dir: &Path| {
        let git = Some(dir.join(".git")).filter(|git| git.exists()).unwrap_or(dir.to_path_buf());
        is_own(dir) && is_own(&git) && has_head(&git)
    };
    let is_below = |dir: &Path| {
        let covers = [TEMP, SHARED_MEMORY].map(Path::new);
        covers.iter().any(|cover| dir.starts_with(cover) && dir != *cover)
    };
    let found = find_repository(&plan.workspace);
    convert_paths(found.iter().filter(|dir| is_below(dir) && is_repository(dir)))
}

/// A directory of programs, and those in which they really are.
fn find_parts(dir: &Path, home: &Path) -> Vec<PathBuf> {
    let real = resolve_path(dir);
    let entries = fs::read_dir(&real).into_iter().flatten().flatten().map(|entry| entry.path());
    let links = entries.filter(|path| path.is_symlink()).filter_map(|path| crate::files::canonicalize(&path).ok());
    let targets = links.filter_map(|target| Some(find_toolchain(target.parent()?, home)));
    let targets = targets.filter(|target| !is_of_system(target, home));
    [dir.to_path_buf(), find_toolchain(&real, home)].into_iter().chain(targets).collect()
}

/// The directory to which a directory of programs belongs: the one above it, unless that has more in it.
fn find_toolchain(dir: &Path, home: &Path) -> PathBuf {
    let is_of_programs = PROGRAM_DIRS.iter().any(|name| dir.ends_with(name));
    let above = dir.parent().filter(|_| is_of_programs);
    let is_own = |above: &&Path| {
        above.strip_prefix(home).unwrap_or(above.strip_prefix("/").unwrap_or(above)).iter().count() > 1
    };
    above.filter(is_own).unwrap_or(dir).to_path_buf()
}

fn is_of_system(path: &Path, home: &Path) -> bool {
    !path.starts_with(home)
        && !path.starts_with(SHARED)
        && SYSTEM.iter().any(|name| path.starts_with(Path::new("/").join(name)))
}

/// Takes everything else out of the view.
///
/// # Errors
/// A step failed: then the command must not run.
pub(super) fn clear_view(stage: &RunStage) -> io::Result<()> {
    // Whatever a command puts into their layers would last.
    let caches = stage.caches.iter().map(|(real, _)| real.as_ref());
    caches.filter(|cache| !is_read_only(cache)).try_for_each(read_only)?;
    let home = &resolve_path(stage.home.as_ref());
    let written = || stage.written.iter().map(AsRef::<Path>::as_ref);
    let foreign = fs::read_dir("/")?.flatten().map(|entry| entry.path());
    let foreign = foreign.filter(|path| !is_of_system(path, home));
    let mut covers: Vec<PathBuf> = foreign.chain([home.clone(), SHARED.into()]).collect();
    covers.retain(|cover| cover.is_dir() && !cover.is_symlink() && !written().any(|tree| cover.starts_with(tree)));
    covers.sort();
    covers.dedup_by(|later, earlier| later.starts_with(earlier));
    let is_covered = |path: &Path| covers.iter().any(|cover| path.starts_with(cover));
    let mut kept: Vec<&Path> =
        written().chain(stage.shown.iter().map(AsRef::as_ref)).filter(|path| is_covered(path)).collect();
    kept.sort_unstable();
    let kept: Vec<(&Path, OwnedFd)> =
        kept.into_iter().map(|path| Ok((path, clone_all(path)?))).collect::<io::Result<_>>()?;
    let git = GitFiles::read(home);
    covers.iter().try_for_each(|path| cover(path))?;
    for (path, tree) in kept {
        fs::create_dir_all(path)?;
        put_back(path, &tree)?;
        if !is_read_only(path) {
            read_only(path)?;
        }
    }
    if is_covered(home) {
        git.write(home)?;
    }
    covers.iter().try_for_each(|path| read_only(path))
}

/// The configuration of git in a home: what git prints with, nothing that it runs or connects to.
struct GitFiles {
    settings: String,
    ignores: String,
}

impl GitFiles {
    fn read(home: &Path) -> Self {
        let read = |path: &Path| {
            let is_file = fs::metadata(path).is_ok_and(|file| file.is_file());
            if is_file { fs::read_to_string(path).unwrap_or_default() } else { String::new() }
        };
        let all = [".config/git/config", ".gitconfig"].map(|name| read(&home.join(name)));
        let named = all.iter().rev().find_map(|text| find_setting(text, "core", "excludesfile"));
        let ignores = named.unwrap_or_else(|| "~/.config/git/ignore".to_owned());
        let ignores = ignores.strip_prefix("~/").map_or_else(|| PathBuf::from(&ignores), |rest| home.join(rest));
        // It connects to nothing.
        let settings = all.map(|text| keep_harmless(&text, |value| !value.contains("://")));
        Self { settings: settings.concat(), ignores: read(&ignores) }
    }

    fn write(&self, home: &Path) -> io::Result<()> {
        let ignores = home.join(".config/git/ignore");
        fs::create_dir_all(home.join(".config/git"))?;
        fs::write(&ignores, &self.ignores)?;
        // Whoever owns a repository, nothing of it leaves these walls.
        let own = format!("[core]\n\texcludesFile = {}\n[safe]\n\tdirectory = *\n", ignores.display());
        fs::write(home.join(".gitconfig"), [&self.settings, own.as_str()].concat())
    }
}
