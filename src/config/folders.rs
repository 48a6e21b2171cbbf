//! The names of the directories that a project or a home configures and instructs with.

/// The config directory of a project.
pub const PROJECT_FOLDER: &str = ".agent";

/// The folder of a config directory with slash commands.
pub(super) const COMMANDS: &str = "commands";

/// The folder of the user's config directory with the copies of plugins, and the file that pins them.
pub(super) const PLUGINS: &str = "plugins";
pub(super) const PLUGIN_LOCK: &str = "plugins.lock";

/// The directories of skills that other agents read as well.
pub(super) const SHARED_SKILLS: [&str; 2] = [".claude/skills", ".agents/skills"];
