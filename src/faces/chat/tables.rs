//! Tables for people: models, tools, skills, costs.

use crate::agent::assembly::ListedModel;
use crate::base::text;
use crate::config::{AgentConfig, Config, Mode};
use crate::conversation::knowledge::Loaded;
use crate::conversation::session::Session;
use crate::conversation::telemetry::{SessionReport, Steps};
use crate::model::{ModelInfo, ToolDefinition};
use crate::screen::terminal;
use crate::skills::{Skill, SkillCatalogue};

/// The longest description, unless the terminal is narrower.
const WIDTH: usize = 100;

/// Lays out rows in columns as wide as their widest cell. The last column is not padded. On a terminal it is cut at
/// the edge, or moves to a line of its own if hardly any room is left.
pub fn lay_out_columns<const N: usize>(rows: &[[String; N]], terminal: Option<usize>) -> String {
    const GAP: usize = 2;
    const INDENT: usize = 4;
    const LEAST: usize = 24;
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| text::count_columns(&row[column])).max().unwrap_or(0));
    let before: usize = widths[..N - 1].iter().map(|width| width + GAP).sum();
    let room = terminal.map_or(usize::MAX, |width| width.saturating_sub(1));
    let apart = room < before + widths[N - 1].min(LEAST);
    let mut out = String::new();
    for row in rows {
        let (last, cells) = row.split_last().expect("a row has a column");
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line += cell;
            line += &" ".repeat(width - text::count_columns(cell) + GAP);
        }
        if apart {
            line.truncate(line.trim_end().len());
            line = format!("{}\n{}", text::cut_to_width(&line, room), " ".repeat(INDENT));
        }
        line += &text::cut_to_width(last, room.saturating_sub(if apart { INDENT } else { before }));
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// The width of the terminal on stdout; `None` for a pipe or a file, where nothing is cut.
pub fn find_edge() -> Option<usize> {
    terminal::stdout_is_terminal().then(terminal::measure_width).flatten()
}

/// Lists models with their windows and prices (USD for a million tokens in and out), and a mark on the one in use.
pub fn list_models(models: &[ListedModel], current: &ModelInfo) -> String {
    let row = |model: &ListedModel| {
        let [name, id, window, price] = list_cells(model);
        [mark_current(model.name == current.name), name, id, window, price]
    };
    let table = lay_out_columns(&models.iter().map(row).collect::<Vec<_>>(), terminal::measure_width());
    format!(
        "{table}/model NAME [LEVEL] uses another: one of these, PROVIDER/ID\n(agent model list), or any other model of the same provider.\nLEVEL says how much it reasons: none to max.\n"
    )
}

/// Lists models as one line each, to choose from. What a narrow screen cuts off is the id.
pub fn label_models(models: &[ListedModel], current: &str) -> Vec<String> {
    let row = |model: &ListedModel| {
        let [name, id, window, price] = list_cells(model);
        let used = if model.name == current { " (in use)" } else { "" };
        [name + used, window, price, id]
    };
    let rows: Vec<[String; 4]> = models.iter().map(row).collect();
    lay_out_columns(&rows, None).lines().map(str::to_owned).collect()
}

/// The cells of a row: name, id, window, price.
fn list_cells(model: &ListedModel) -> [String; 4] {
    let id = model.id.as_deref().map_or("a script".into(), text::make_visible).into_owned();
    [text::make_visible(&model.name).into_owned(), id, model.window_in_short(), model.price_in_short()]
}

/// Lists the agents with their models, and a mark on the one in use.
pub fn list_agents(config: &Config, current: &str) -> String {
    let row = |agent: &AgentConfig| {
        let about = text::one_line(&agent.description, WIDTH);
        [mark_current(agent.name == current), agent.name.clone(), agent.model_name().to_owned(), about]
    };
    lay_out_columns(&config.agents.values().map(row).collect::<Vec<_>>(), terminal::measure_width())
}

/// The meaning of a mode in a few words.
pub fn describe_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Direct => "the model calls tools until it answers",
        Mode::Route => "a router picks a tool, an agent or a flow first",
        Mode::Plan => "a planner lists steps, which run by themselves and are judged",
        Mode::Explore => "only reads, and proposes; you approve what changes anything",
    }
}

/// Lists the words that a command takes with their meanings, and a mark on the current one.
pub fn list_words<const N: usize>(words: [(bool, &str, &str); N]) -> String {
    let row = |(is_current, word, about): (bool, &str, &str)| {
        [mark_current(is_current), word.to_owned(), about.to_owned()]
    };
    lay_out_columns(&words.map(row), terminal::measure_width())
}

fn mark_current(is_current: bool) -> String {
    if is_current { "*" } else { " " }.to_owned()
}

/// The mistake of naming a `kind` of thing that is not `known`.
pub fn refuse_word(kind: &str, word: &str, known: &[&str]) -> String {
    format!("there is no {kind} `{}`; there are {}", text::one_line(word, 40), known.join(", "))
}

/// Lists tools.
pub fn list_tools<'a>(definitions: impl Iterator<Item = &'a ToolDefinition>) -> String {
    let rows: Vec<[String; 3]> = definitions
        .map(|tool| {
            let permission = format!("{:?}", tool.permission).to_lowercase();
            [tool.name.clone(), permission, text::one_line(&tool.description, WIDTH)]
        })
        .collect();
    if rows.is_empty() {
        return "No tools.\n".to_owned();
    }
    lay_out_columns(&rows, terminal::measure_width())
}

/// Lists the skills, with marks on the loaded ones.
pub fn list_skills(catalogue: &SkillCatalogue, loaded: &Loaded) -> String {
    if catalogue.is_empty() {
        return "No skills.\n".to_owned();
    }
    let rows: Vec<[String; 3]> = catalogue
        .iter()
        .map(|skill| {
            let mark = if loaded.contains(&skill.name) { "[✓]" } else { "[○]" };
            [mark.to_owned(), skill.name.clone(), about_skill(skill)]
        })
        .collect();
    lay_out_columns(&rows, terminal::measure_width())
}

/// Describes a skill in one line: its description, who may load it, and the skills that it hides.
pub fn about_skill(skill: &Skill) -> String {
    let hidden = if skill.is_hidden { " (for you alone: /skill)" } else { "" };
    let hides = match skill.hides.as_slice() {
        [] => String::new(),
        hides => format!(" (hides {})", hides.join(", ")),
    };
    text::one_line(&skill.description, WIDTH) + hidden + &hides
}

/// Sums up the costs of a session.
pub fn sum_costs(session: &Session) -> SessionReport {
    let steps = Steps { count: session.steps(), usage: session.usage(), cost_usd: session.cost_usd() };
    SessionReport::new(steps, session.costs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_display_width() {
        let rows = [["日本", "1"], ["ab", "22"]].map(|row| row.map(str::to_owned));
        assert_eq!(lay_out_columns(&rows, None), "日本  1\nab    22\n");
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        let rows =
            [["load_skill_reference", "read", "Reads a text file, 一個字 at a time"], ["grep", "read", "Looks."]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(
            lay_out_columns(&rows, Some(56)),
            "load_skill_reference  read  Reads a text file, 一個字…\ngrep                  read  Looks.\n"
        );
        assert_eq!(
            lay_out_columns(&rows, Some(30)),
            "load_skill_reference  read\n    Reads a text file, 一個…\ngrep                  read\n    Looks.\n"
        );
    }
}
