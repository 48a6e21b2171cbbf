//! `ui` in `agent.yaml`: the look and behaviour of the program on a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The section `ui`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UiSettings {
    pub theme: ThemeChoice,
    /// The parts of the line under each turn, in this order; an empty list means no line.
    pub status: Vec<StatusPart>,
    /// The notification that a turn of more than ten seconds has ended, or that a question waits.
    pub notify: Notify,
    pub edit_mode: EditMode,
    /// If true, answers are formatted as Markdown; if false, they are shown as the model wrote them.
    pub markdown: bool,
    /// If true, the model's reasoning is shown in full; if false, one line counts it.
    pub reasoning: bool,
    /// If true, the screen is for a program that reads it aloud: plain lines, words in place of marks and frames, answers
    /// as the model wrote them.
    pub screen_reader: bool,
    /// The model that gives a chat its title after the first turn; without one, the title is the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_model: Option<String>,
}

impl Default for UiSettings {
    fn default() -> Self {
        use StatusPart::{Context, Cost, Model, Time, Tokens};
        Self {
            theme: ThemeChoice::default(),
            status: vec![Model, Tokens, Cost, Context, Time],
            notify: Notify::default(),
            edit_mode: EditMode::default(),
            markdown: true,
            reasoning: false,
            screen_reader: false,
            title_model: None,
        }
    }
}

/// The colours that suit the background of the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThemeChoice {
    /// Asks the terminal.
    #[default]
    Auto,
    Light,
    Dark,
    /// No colours.
    None,
}

/// A part of the line under a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusPart {
    Model,
    /// In, cached, out.
    Tokens,
    Cost,
    /// The fill level of the context, as a bar with a mark where compression begins.
    Context,
    Time,
}

/// The way to notify a person who looks elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// The bell of the terminal.
    #[default]
    Bell,
    /// A notification of the desktop, by the terminal.
    Desktop,
    Off,
}

/// The keys of the line editor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditMode {
    #[default]
    Emacs,
    Vi,
}
