//! Tables for people: models, tools, skills, what fills the context.

use unicode_width::UnicodeWidthStr;

use crate::agent::Agent;
use crate::config::Config;
use crate::context;
use crate::contract::{ModelInfo, ToolDefinition, WindowSource};
use crate::message::Message;
use crate::skills::{Catalogue, Loaded};
use crate::text;
use crate::tokens::Encoding;

/// Rows in columns as wide as their widest cell; the last column is not padded.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0));
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line += cell;
            line += &" ".repeat(width - cell.width() + 2);
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// The configured models, the one in use marked.
pub(super) fn models(config: &Config, current: &ModelInfo) -> String {
    let rows: Vec<[String; 3]> = config
        .models
        .values()
        .map(|model| {
            let mark = if model.name == current.name { "*" } else { " " };
            let id = if model.name == current.name { Some(current.id.as_str()) } else { model.model.as_deref() };
            [mark.to_owned(), model.name.clone(), id.unwrap_or("a script").to_owned()]
        })
        .collect();
    format!("{}/model NAME switches; a name that is not configured is the provider's model id.\n", columns(&rows))
}

/// The tools that the model is shown.
pub(super) fn tools(definitions: &[ToolDefinition]) -> String {
    const WIDTH: usize = 100;
    if definitions.is_empty() {
        return "No tools.\n".to_owned();
    }
    let rows: Vec<[String; 3]> = definitions
        .iter()
        .map(|tool| {
            let permission = format!("{:?}", tool.permission).to_lowercase();
            [tool.name.clone(), permission, text::one_line(&tool.description, WIDTH)]
        })
        .collect();
    columns(&rows)
}

/// The skills, the loaded ones marked, with what each of them hides.
pub(super) fn skills(catalogue: &Catalogue, loaded: &Loaded) -> String {
    const WIDTH: usize = 100;
    if catalogue.is_empty() {
        return "No skills.\n".to_owned();
    }
    let rows: Vec<[String; 3]> = catalogue
        .iter()
        .map(|skill| {
            let mark = if loaded.contains(&skill.name) { "[✓]" } else { "[○]" };
            let hides = skill.hides.as_ref().map(|path| format!(" (hides {path})")).unwrap_or_default();
            [mark.to_owned(), skill.name.clone(), text::one_line(&skill.description, WIDTH) + &hides]
        })
        .collect();
    columns(&rows)
}

/// What fills the window, counted with the tokenizer nearest to the model's.
pub(super) fn context(agent: &Agent, messages: &[Message]) -> String {
    let info = agent.model.info();
    let encoding = context::encoding(&info.id);
    let (mut system, mut input, mut replies, mut results) = (0, 0, 0, 0);
    for message in messages {
        let tokens = context::count_message(encoding, message);
        match message {
            Message::System { .. } => system += tokens,
            Message::User { .. } => input += tokens,
            Message::Assistant(_) => replies += tokens,
            Message::Tool(_) => results += tokens,
        }
    }
    let tools = context::count_tools(encoding, agent.tools.definitions());
    let used = system + input + replies + results + tools;
    let budget = agent.budget.tokens;
    let row = |name: &str, tokens: u64| [name.to_owned(), tokens.to_string(), share(tokens, budget)];
    let rows = [
        row("system prompt", system),
        row("tool definitions", tools),
        row("user", input),
        row("assistant", replies),
        row("tool results", results),
        row("used", used),
        row("free", budget.saturating_sub(used)),
    ];
    let source = match info.window_source {
        WindowSource::Declared => "declared",
        WindowSource::Catalogue => "from the catalogue",
        WindowSource::Assumed => "assumed: declare context_window in the model's file",
    };
    format!(
        "{}The budget is {budget} tokens of a window of {} ({source}); {}.\n",
        columns(&rows),
        info.context_window,
        match Encoding::of_model(&info.id) {
            Some(_) => "counted with the model's own encoding",
            None => "counted with the nearest public encoding, so an estimate",
        }
    )
}

fn share(tokens: u64, budget: u64) -> String {
    let tenths = tokens.saturating_mul(1000) / budget.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_display_width() {
        let rows = [["日本", "1"], ["ab", "22"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows), "日本  1\nab    22\n");
    }
}
