//! The files of `configs/`, `prompts/` and `skills/`, compiled in: the binary needs no file to run.
//!
//! The build has parsed the parts that every startup needs (`build/built_in.rs`): see [`find_tree`] and [`find_digest`].

pub use include_dir::Dir;
use include_dir::include_dir;

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// Built-in configuration, laid out as a config directory.
pub static CONFIGS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/configs");
/// Built-in prompts: `NAME/vX.Y.md`, `modules/NAME/vX.Y.md`, and the files beside them.
pub static PROMPTS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/prompts");
/// Built-in skills: `NAME/SKILL.md` and the files that belong to it.
pub static SKILLS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/skills");

/// The parsed content of a built-in file, packed (`yaml::unpack_tree` unpacks it): a whole YAML file, or the head of a
/// prompt or of a `SKILL.md`, with its places in the file. `folder` is `configs`, `prompts` or `skills`, and `path` is
/// inside it.
pub fn find_tree(folder: &str, path: &str) -> Option<&'static [u8]> {
    find_entry(TREES, folder, path)
}

/// The text of the built-in prompt file at `path` (`NAME/vX.Y.md`). Names are compared whole, since splitting paths
/// would slow down the startup.
pub fn prompt_text(path: &str) -> Option<&'static str> {
    let (folder, _) = path.rsplit_once('/')?;
    let file = prompt_folder(folder)?.files().find(|file| file.path().as_os_str() == path)?;
    file.contents_utf8()
}

/// The text of a file beside the built-in prompt `name`.
pub fn prompt_file(name: &str, file: &str) -> Option<&'static str> {
    let found =
        prompt_folder(name)?.files().find(|found| found.path().file_name().is_some_and(|name| name == file));
    found?.contents_utf8()
}

/// A folder of the built-in prompts, `NAME` or `modules/NAME`; the whole for an empty name.
pub fn prompt_folder(name: &str) -> Option<&'static Dir<'static>> {
    if name.is_empty() {
        return Some(&PROMPTS);
    }
    let inside =
        |dir: &'static Dir<'static>, name: &str| dir.dirs().find(|inner| inner.path().as_os_str() == name);
    match name.split_once('/') {
        None => inside(&PROMPTS, name),
        Some((outer, _)) => inside(inside(&PROMPTS, outer)?, name),
    }
}

/// The SHA-256 of the built-in prompt at `path` (`NAME/vX.Y.md`), composed with its modules, in hexadecimal digits.
pub fn find_digest(path: &str) -> Option<&'static str> {
    find_entry(DIGESTS, "prompts", path)
}

fn find_entry<T: ?Sized>(table: &[(&str, &'static T)], folder: &str, path: &str) -> Option<&'static T> {
    let is_meant = |name: &str| {
        name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| rest == path)
    };
    table.iter().find(|(name, _)| is_meant(name)).map(|(_, made)| *made)
}
