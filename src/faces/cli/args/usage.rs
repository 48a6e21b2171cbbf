//! A command line that cannot be parsed, or that asks for help.

use clap::error::ErrorKind;

/// The text to print, and whether it is an error. The last line of an error is its reason.
#[derive(Debug)]
pub struct UsageError {
    pub plain: String,
    /// With the escapes for colours and styles.
    pub styled: String,
    pub is_error: bool,
}

impl From<clap::Error> for UsageError {
    fn from(error: clap::Error) -> Self {
        let text = error.render();
        let [plain, styled] = [text.to_string(), text.ansi().to_string()].map(|text| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => text,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                format!("{}\n\nerror: a command is missing\n", text.trim_end())
            }
            _ if text.contains(SHORT_CONFIG) => {
                format!("To go on with the latest session: agent --continue\n\n{}", reason_last(&text))
            }
            _ => reason_last(&text),
        });
        Self { plain, styled, is_error: error.use_stderr() }
    }
}

/// What people mean by `-c` who come from other agents.
const SHORT_CONFIG: &str = "a value is required for '--config <DIR>' but none was supplied";

/// Puts the first paragraph, which is the reason, behind the others, as one line.
fn reason_last(text: &str) -> String {
    let (reason, more) = text.trim_end().split_once("\n\n").unwrap_or((text.trim_end(), ""));
    let reason = reason.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    if more.is_empty() { format!("{reason}\n") } else { format!("{more}\n\n{reason}\n") }
}
