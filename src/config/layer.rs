//! Which directories are read, and what lies in them. Whatever is not understood is reported, never passed over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::mistake::{Mistake, did_you_mean};
use super::options::LoadOptions;
use super::skill_dirs::{self, SkillDir, SkillScope};
use super::source::{Kind, Layer};
use crate::builtin;
use crate::regular::read_regular;

/// One directory of a layer, lowest first.
pub(super) struct LayerDir {
    pub layer: Layer,
    /// Absolute, links followed. The built-in layer has none.
    pub dir: Option<PathBuf>,
}

/// A file that describes something.
pub(super) struct ConfigFile {
    pub layer: Layer,
    pub kind: Kind,
    /// The stem of its name; empty for the settings.
    pub name: String,
    /// How people call it.
    pub display: String,
    /// The config directory that it belongs to.
    pub dir: Option<PathBuf>,
    pub text: String,
    /// `.yaml.j2`
    pub whole_template: bool,
}

/// The files of a directory.
#[derive(Default)]
pub(super) struct Scan {
    pub files: Vec<ConfigFile>,
    pub mistakes: Vec<Mistake>,
    /// Entries that nothing reads, by their path inside the directory: mistakes, unless a template includes them.
    pub unknown: Vec<(String, Mistake)>,
}

/// The directories, with those that prompts and skills are read from.
#[derive(Default)]
pub(super) struct Layers {
    pub dirs: Vec<LayerDir>,
    pub prompt_dirs: Vec<PathBuf>,
    pub skill_dirs: Vec<SkillDir>,
    pub mistakes: Vec<Mistake>,
    pub warnings: Vec<String>,
}

const NOT_A_DIRECTORY: &str = "is not a directory";

pub(super) fn find(options: &LoadOptions<'_>) -> Layers {
    let mut layers = Layers::default();
    layers.dirs.push(LayerDir { layer: Layer::BuiltIn, dir: None });
    if let Some(dir) = options.directory() {
        match dir.canonicalize() {
            Ok(dir) if dir.is_dir() => {
                layers.prompts_of(dir.parent());
                layers.skill_dirs = skill_dirs::of_directory(&dir);
                layers.add(Layer::Directory, dir);
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
    match user.canonicalize() {
        Ok(dir) if dir.is_dir() => layers.add(Layer::User, dir),
        Ok(dir) => layers.mistakes.push(Mistake::in_file(dir.display().to_string(), NOT_A_DIRECTORY)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            layers.mistakes.push(Mistake::in_file(user.display().to_string(), format!("cannot be read: {error}")));
        }
    }
    let Some(brought) = options.brought() else { return layers };
    if options.trust {
        for dir in brought.config_dirs() {
            layers.add(Layer::Project, dir.to_path_buf());
        }
        let top = options.workspace.git_root().unwrap_or(options.workspace.root());
        let dirs = brought.skill_dirs();
        layers.skill_dirs.extend(dirs.map(|dir| SkillDir::new(dir, SkillScope::Project, Some(top))));
    } else {
        let dirs: Vec<String> = brought.dirs().map(|dir| dir.display().to_string()).collect();
        layers.warnings.push(format!("{} is not trusted and was left out (--trust uses it)", dirs.join(", ")));
    }
    layers
}

impl Layers {
    fn add(&mut self, layer: Layer, dir: PathBuf) {
        self.prompts_of(Some(&dir));
        self.dirs.push(LayerDir { layer, dir: Some(dir) });
    }

    fn prompts_of(&mut self, dir: Option<&Path>) {
        self.prompt_dirs.extend(dir.map(|dir| dir.join("prompts")).filter(|dir| dir.is_dir()));
    }
}

pub(super) fn scan(layer: &LayerDir) -> Scan {
    let mut scan = Scan::default();
    match &layer.dir {
        None => built_in(&builtin::CONFIGS, &mut scan),
        Some(dir) => walk(layer.layer, dir, "", &mut scan),
    }
    scan.files.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    let twice = |pair: &[ConfigFile]| (pair[0].kind, &pair[0].name) == (pair[1].kind, &pair[1].name);
    for pair in scan.files.windows(2).filter(|pair| twice(pair)) {
        let message = format!("describes the same as {}; keep one of them", pair[0].display);
        scan.mistakes.push(Mistake::in_file(&pair[1].display, message));
    }
    scan
}

fn built_in(dir: &builtin::Dir<'static>, scan: &mut Scan) {
    for file in dir.files() {
        let path = file.path().to_string_lossy();
        let Entry::File(kind, name, whole_template) = classify(&path) else { continue };
        let text = file.contents_utf8().expect("built-in files are UTF-8").to_owned();
        let display = format!("<built-in>/{path}");
        scan.files.push(ConfigFile {
            layer: Layer::BuiltIn,
            kind,
            name,
            display,
            dir: None,
            text,
            whole_template,
        });
    }
    dir.dirs().for_each(|dir| built_in(dir, scan));
}

fn walk(layer: Layer, root: &Path, inside: &str, scan: &mut Scan) {
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
                Entry::Open => walk(layer, root, &relative, scan),
                _ if matches!(classify(&relative), Entry::File(..)) => {
                    let message = "is a directory, not a file";
                    scan.mistakes.push(Mistake::in_file(path.display().to_string(), message));
                }
                Entry::Unknown(hint) => scan.unknown(root, relative, "is no directory of a configuration", hint),
                _ => {}
            }
            continue;
        }
        match classify(&relative) {
            Entry::File(kind, name, whole_template) => match read_inside(root, &relative) {
                Ok(text) => scan.files.push(ConfigFile {
                    layer,
                    kind,
                    name,
                    display: path.display().to_string(),
                    dir: Some(root.to_path_buf()),
                    text,
                    whole_template,
                }),
                Err(message) => scan.mistakes.push(Mistake::in_file(path.display().to_string(), message)),
            },
            Entry::Unknown(hint) => scan.unknown(root, relative, "is no file of a configuration", hint),
            _ => {}
        }
    }
}

impl Scan {
    fn unknown(&mut self, root: &Path, relative: String, message: &str, hint: Option<String>) {
        let mut mistake = Mistake::in_file(root.join(&relative).display().to_string(), message);
        mistake.hint = hint;
        self.unknown.push((relative, mistake));
    }
}

/// The text of a file that truly lies in `root`: a link that leads out is refused.
pub(super) fn read_inside(root: &Path, relative: &str) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let path = root.join(relative).canonicalize().map_err(unreadable)?;
    if !path.starts_with(root) {
        return Err("is a link that leads out of its directory".to_owned());
    }
    read_regular(&path)?.ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))
}

enum Entry {
    /// Kind, name, whether it is a template as a whole.
    File(Kind, String, bool),
    /// A directory to look into.
    Open,
    /// Read by somebody else, or nobody's business.
    Other,
    Unknown(Option<String>),
}

fn classify_dir(path: &str) -> Entry {
    const OTHERS: [&str; 2] = ["prompts", "skills"];
    let folders = || Kind::NAMED.into_iter().map(Kind::folder);
    if folders().any(|folder| folder == path || folder.starts_with(&format!("{path}/"))) {
        return Entry::Open;
    }
    if OTHERS.contains(&path) || path.rsplit('/').next().is_some_and(|name| name.starts_with(['.', '_'])) {
        return Entry::Other;
    }
    Entry::Unknown(did_you_mean(path, folders().chain(OTHERS)))
}

fn classify(path: &str) -> Entry {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let text_for_people = ["md", "txt", "bak", "orig", "swp"].iter().any(|end| file.ends_with(&format!(".{end}")));
    if file.starts_with(['.', '_']) || file.ends_with('~') || file.starts_with("LICENSE") || text_for_people {
        return Entry::Other;
    }
    let (stem, whole_template) = match (file.strip_suffix(".yaml"), file.strip_suffix(".yaml.j2")) {
        (Some(stem), _) => (stem, false),
        (_, Some(stem)) => (stem, true),
        _ => {
            let stem = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".yml.j2"));
            return Entry::Unknown(stem.map(|stem| format!("call it {stem}.yaml{}", &file[stem.len() + 4..])));
        }
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match Kind::ALL.into_iter().find(|kind| kind.folder() == folder) {
        Some(Kind::Settings) if stem == "agent" => Entry::File(Kind::Settings, String::new(), whole_template),
        Some(Kind::Settings) | None => {
            let near = did_you_mean(stem, ["agent"]).map(|_| "did you mean `agent.yaml`?".to_owned());
            let folders: Vec<&str> = Kind::NAMED.into_iter().map(Kind::folder).collect();
            let places = format!("settings are agent.yaml; the rest lies in {}", folders.join(", "));
            Entry::Unknown(Some(near.unwrap_or(places)))
        }
        Some(kind) if stem.chars().all(valid) => Entry::File(kind, stem.to_owned(), whole_template),
        Some(_) => Entry::Unknown(Some("a name has letters, digits, `-`, `_` and `.` only".to_owned())),
    }
}
