//! Finds the directories to read and the files in them. Anything unknown is reported, never skipped silently.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;

use super::folders::{COMMANDS, PLUGIN_LOCK, PLUGINS};
use super::manifest::{Manifest, show_path};
use super::mistake::{Mistake, did_you_mean};
use super::options::LoadOptions;
use super::skill_dirs::{self, SkillDir};
use super::source::{ConfigLayer, SubjectKind};
use super::through::{CommandDir, FileAccess, PromptDir};
use crate::base::builtin;
use crate::files::regular::read_regular;

/// One directory of a layer, lowest first.
pub(super) struct LayerDir {
    pub layer: ConfigLayer,
    /// Absolute, links followed. The built-in layer has none.
    pub dir: Option<PathBuf>,
    pub through: FileAccess,
}

/// A file that describes something.
pub(super) struct ConfigFile {
    /// The config directory that it belongs to.
    pub of: Arc<LayerDir>,
    pub kind: SubjectKind,
    /// The stem of its name; empty for the settings.
    pub name: String,
    /// Its name for people.
    pub display: String,
    pub text: Cow<'static, str>,
    /// The result of the build's reading.
    pub packed: Option<&'static [u8]>,
    /// `.yaml.j2`
    pub whole_template: bool,
}

/// The files of a directory.
#[derive(Default)]
pub(super) struct Scan {
    pub files: Vec<ConfigFile>,
    pub mistakes: Vec<Mistake>,
    pub warnings: Vec<String>,
    /// Entries that nothing reads, by their path inside the directory: mistakes, unless a template includes them.
    pub unknown: Vec<(String, Mistake)>,
}

/// The directories, with those that prompts, skills and commands are read from.
#[derive(Default)]
pub(super) struct Layers {
    pub dirs: Vec<Arc<LayerDir>>,
    pub prompt_dirs: Vec<PromptDir>,
    pub skill_dirs: Vec<SkillDir>,
    pub command_dirs: Vec<CommandDir>,
    pub mistakes: Vec<Mistake>,
    pub warnings: Vec<String>,
}

const NOT_A_DIRECTORY: &str = "is not a directory";

pub(super) fn find_layers(options: &LoadOptions<'_>) -> Layers {
    let mut layers = Layers::default();
    let as_it_is = FileAccess::default();
    let built_in = LayerDir { layer: ConfigLayer::BuiltIn, dir: None, through: as_it_is.clone() };
    layers.dirs.push(Arc::new(built_in));
    if let Some(dir) = options.directory() {
        match crate::files::canonicalize(&dir) {
            Ok(dir) if dir.is_dir() => {
                layers.prompts_of(dir.parent(), &as_it_is);
                layers.skill_dirs = skill_dirs::of_directory(&dir);
                layers.add(ConfigLayer::Directory, dir, as_it_is);
            }
            Ok(_) => layers.mistakes.push(Mistake::in_file(dir.display().to_string(), NOT_A_DIRECTORY)),
            Err(error) => {
                let mistake = Mistake::in_file(dir.display().to_string(), format!("cannot be read: {error}"));
                layers.mistakes.push(mistake.hint("`agent init DIR` writes the built-in files out"));
            }
        }
        return layers;
    }
    let user = options.env.dirs().config;
    layers.skill_dirs = skill_dirs::of_user(&options.env.dirs());
    match user.symlink_metadata().and_then(|_| crate::files::canonicalize(&user)) {
        Ok(dir) if dir.is_dir() => layers.add(ConfigLayer::User, dir, as_it_is),
        Ok(dir) => layers.mistakes.push(Mistake::in_file(dir.display().to_string(), NOT_A_DIRECTORY)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            layers.mistakes.push(Mistake::in_file(user.display().to_string(), format!("cannot be read: {error}")));
        }
    }
    if let Some(brought) = &options.brought {
        layers.project(brought, options);
    }
    layers
}

impl Layers {
    /// Adds the directories that the workspace brings along, or reports that they are left out.
    fn project(&mut self, brought: &Arc<Manifest>, options: &LoadOptions<'_>) {
        self.warnings.extend(shorten_list(brought.refused.iter().cloned()));
        if !brought.brings_anything() {
            return;
        }
        if !options.trust {
            let servers = brought.server_files();
            let dirs = brought.dirs().map(Path::to_path_buf).chain(servers);
            let dirs = dirs.map(|path| show_path(&path)).collect::<Vec<_>>().join(", ");
            return self.warnings.push(format!("{dirs} is not trusted and was left out (--trust uses it)"));
        }
        let through = FileAccess::manifest(brought);
        for dir in brought.config_dirs() {
            self.add(ConfigLayer::Project, dir.to_path_buf(), through.clone());
        }
        let top = options.workspace.git_root().unwrap_or(options.workspace.root());
        let dirs = brought.skill_dirs();
        self.skill_dirs.extend(dirs.map(|dir| SkillDir::of_project(dir, top, through.clone())));
    }

    fn add(&mut self, layer: ConfigLayer, dir: PathBuf, through: FileAccess) {
        self.prompts_of(Some(&dir), &through);
        let commands = dir.join(COMMANDS);
        if commands.is_dir() {
            let (through, is_of_project) = (through.clone(), layer == ConfigLayer::Project);
            self.command_dirs.push(CommandDir { dir: commands, through, is_of_project });
        }
        self.dirs.push(Arc::new(LayerDir { layer, dir: Some(dir), through }));
    }

    fn prompts_of(&mut self, dir: Option<&Path>, through: &FileAccess) {
        let dir = dir.map(|dir| dir.join("prompts")).filter(|dir| dir.is_dir());
        self.prompt_dirs.extend(dir.map(|dir| PromptDir { dir, through: through.clone() }));
    }
}

/// The first of many lines about a workspace, and the number of the others.
pub(super) fn shorten_list(lines: impl Iterator<Item = String>) -> Vec<String> {
    const MOST: usize = 20;
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    lines.extend((more > 0).then(|| format!("{more} more files of the workspace are left out")));
    lines
}

pub(super) fn scan_layer(layer: &Arc<LayerDir>) -> Scan {
    let mut scan = Scan::default();
    match &layer.dir {
        None => built_in(layer, &builtin::CONFIGS, &mut scan),
        Some(dir) => match layer.through.list_files(dir) {
            Some(files) => list_brought(layer, dir, files, &mut scan),
            None => walk_layer(layer, dir, "", &mut scan),
        },
    }
    scan.files.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    let twice = |pair: &[ConfigFile]| (pair[0].kind, &pair[0].name) == (pair[1].kind, &pair[1].name);
    for pair in scan.files.windows(2).filter(|pair| twice(pair)) {
        let message = format!("describes the same as {}; keep one of them", pair[0].display);
        scan.mistakes.push(Mistake::in_file(&pair[1].display, message));
    }
    scan
}

fn built_in(layer: &Arc<LayerDir>, dir: &builtin::Dir<'static>, scan: &mut Scan) {
    for file in dir.files() {
        let path = file.path().to_string_lossy();
        let LayerEntry::File(kind, name, whole_template) = classify_path(&path) else { continue };
        let text = file.contents_utf8().expect("built-in files are UTF-8").into();
        let display = format!("<built-in>/{path}");
        let packed = builtin::find_tree("configs", &path);
        scan.files.push(ConfigFile { of: Arc::clone(layer), kind, name, display, text, packed, whole_template });
    }
    dir.dirs().for_each(|dir| built_in(layer, dir, scan));
}

fn walk_layer(layer: &Arc<LayerDir>, root: &Path, inside: &str, scan: &mut Scan) {
    let here = root.join(inside);
    let entries = match fs::read_dir(&here) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("cannot be read: {error}");
            return scan.mistakes.push(Mistake::in_file(here.display().to_string(), message));
        }
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let relative = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        let path = entry.path();
        if path.is_dir() {
            match classify_dir(&relative) {
                LayerEntry::Open => walk_layer(layer, root, &relative, scan),
                _ if matches!(classify_path(&relative), LayerEntry::File(..)) => {
                    let message = "is a directory, not a file";
                    scan.mistakes.push(Mistake::in_file(path.display().to_string(), message));
                }
                LayerEntry::Unknown(hint) => {
                    scan.report_unknown(root, relative, "is not a directory of a configuration", hint);
                }
                _ => {}
            }
            continue;
        }
        let display = path.display().to_string();
        match classify_path(&relative) {
            LayerEntry::File(kind, name, whole_template) => match read_inside(root, &relative) {
                Ok(text) => {
                    let (of, text, packed) = (Arc::clone(layer), text.into(), None);
                    scan.files.push(ConfigFile { of, kind, name, display, text, packed, whole_template });
                }
                Err(message) => scan.mistakes.push(Mistake::in_file(display, message)),
            },
            LayerEntry::Unknown(hint) => {
                scan.report_unknown(root, relative, "is not a file of a configuration", hint);
            }
            _ => {}
        }
    }
}

/// The files of a directory that the workspace brings along. Unread files are not mistakes of the user.
fn list_brought(layer: &Arc<LayerDir>, root: &Path, files: Vec<PathBuf>, scan: &mut Scan) {
    for path in files {
        let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        let relative = relative.replace(MAIN_SEPARATOR, "/");
        let mut above =
            Path::new(&relative).ancestors().skip(1).filter_map(Path::to_str).filter(|dir| !dir.is_empty());
        if above.any(|dir| matches!(classify_dir(dir), LayerEntry::Other)) {
            continue;
        }
        let display = show_path(&path);
        match classify_path(&relative) {
            LayerEntry::File(kind, name, whole_template) => match layer.through.read_text(&path) {
                Ok(Some(text)) => {
                    let (of, text, packed) = (Arc::clone(layer), text.into(), None);
                    scan.files.push(ConfigFile { of, kind, name, display, text, packed, whole_template });
                }
                Ok(None) => {}
                Err(why) => scan.warnings.push(format!("{display} {why}")),
            },
            LayerEntry::Unknown(_) => {
                let mistake = Mistake::in_file(display, "is not a file of a configuration and is left out");
                scan.unknown.push((relative, mistake));
            }
            _ => {}
        }
    }
}

impl Scan {
    fn report_unknown(&mut self, root: &Path, relative: String, message: &str, hint: Option<String>) {
        let mut mistake = Mistake::in_file(root.join(&relative).display().to_string(), message);
        mistake.hint = hint;
        self.unknown.push((relative, mistake));
    }
}

/// The text of a file that is really in `root`: a link that leads out is refused.
pub(super) fn read_inside(root: &Path, relative: &str) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let path = crate::files::canonicalize(&root.join(relative)).map_err(unreadable)?;
    if !path.starts_with(root) {
        return Err("is a link that leads out of its directory".to_owned());
    }
    read_regular(&path)?.ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))
}

enum LayerEntry {
    /// Kind, name, whether it is a template as a whole.
    File(SubjectKind, String, bool),
    /// A directory to search.
    Open,
    /// Read elsewhere, or ignored.
    Other,
    Unknown(Option<String>),
}

fn classify_dir(path: &str) -> LayerEntry {
    const OTHERS: [&str; 4] = ["prompts", "skills", COMMANDS, PLUGINS];
    let folders = || SubjectKind::NAMED.into_iter().map(SubjectKind::folder);
    if folders().any(|folder| folder == path || folder.starts_with(&format!("{path}/"))) {
        return LayerEntry::Open;
    }
    if OTHERS.contains(&path) || path.rsplit('/').next().is_some_and(|name| name.starts_with(['.', '_'])) {
        return LayerEntry::Other;
    }
    LayerEntry::Unknown(did_you_mean(path, folders().chain(OTHERS)))
}

fn classify_path(path: &str) -> LayerEntry {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let text_for_people = ["md", "txt", "bak", "orig", "swp"].iter().any(|end| file.ends_with(&format!(".{end}")));
    if path == PLUGIN_LOCK
        || file.starts_with(['.', '_'])
        || file.ends_with('~')
        || file.starts_with("LICENSE")
        || text_for_people
    {
        return LayerEntry::Other;
    }
    let (stem, whole_template) = match (file.strip_suffix(".yaml"), file.strip_suffix(".yaml.j2")) {
        (Some(stem), _) => (stem, false),
        (_, Some(stem)) => (stem, true),
        _ => {
            let stem = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".yml.j2"));
            return LayerEntry::Unknown(
                stem.map(|stem| format!("call it {stem}.yaml{}", &file[stem.len() + 4..])),
            );
        }
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match SubjectKind::ALL.into_iter().find(|kind| kind.folder() == folder) {
        Some(SubjectKind::Settings) if stem == "agent" => {
            LayerEntry::File(SubjectKind::Settings, String::new(), whole_template)
        }
        Some(SubjectKind::Settings) | None => {
            let near = did_you_mean(stem, ["agent"]).map(|_| "did you mean `agent.yaml`?".to_owned());
            let folders: Vec<&str> = SubjectKind::NAMED.into_iter().map(SubjectKind::folder).collect();
            let places = format!("settings are in agent.yaml; the rest is in {}", folders.join(", "));
            LayerEntry::Unknown(Some(near.unwrap_or(places)))
        }
        Some(kind) if stem.chars().all(valid) => LayerEntry::File(kind, stem.to_owned(), whole_template),
        Some(_) => LayerEntry::Unknown(Some("a name has letters, digits, `-`, `_` and `.` only".to_owned())),
    }
}
