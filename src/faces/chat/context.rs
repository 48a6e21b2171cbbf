//! Tables of the context for people: what fills the window, and what a compression would change.

use crate::agent::window::{Basis, Fill};
use crate::agent::{Agent, Conversation, Preview, Run, measure_fill, preview_compression};
use crate::model::{ModelInfo, WindowSource};
use crate::screen::terminal;

use super::tables::lay_out_columns;

/// Formats the contents of the window as a bar and a table, for `/context` and `agent session show --context`.
pub fn format_window(agent: &Agent, conversation: &mut Conversation, run: &mut Run) -> String {
    let (usage, basis) = measure_fill(agent, conversation, run);
    let width = terminal::measure_width();
    format!(
        "{}\n{}{}\n{}\n{}\n",
        draw_bar(&usage, width.unwrap_or(80)),
        lay_out_rows(&usage, width),
        how_far(&usage),
        describe_window(&usage, agent.model.info()),
        rests_on(basis),
    )
}

/// Formats what a compression would change, for `/compact --dry-run` and `agent session compact --dry-run`.
pub fn format_plan(agent: &Agent, conversation: &mut Conversation, run: &mut Run) -> String {
    let Preview { changes, before, after } = preview_compression(agent, conversation, run);
    if changes.is_empty() {
        return format!("Nothing to compact: {before} tokens of a budget of {}.\n", agent.budget.tokens);
    }
    let rows: Vec<[String; 3]> = changes
        .into_iter()
        .map(|change| [change.what.to_owned(), format!("{:>8}", change.tokens), change.item])
        .collect();
    format!("{}{before} tokens would become about {after}.\n", lay_out_columns(&rows, terminal::measure_width()))
}

/// The letters of the bar, in the order of the rows.
const MARKS: [char; Fill::ROWS] = ['P', 'T', 'L', 'I', 'S', 'u', 'm', 'c', 'f', 'r', 's', 'U', 'R'];

/// Draws `PPTTuummmcffff····│··░░░░`: the used tokens by kind, the free ones with the mark of the next compression, and
/// the reserve.
fn draw_bar(usage: &Fill, width: usize) -> String {
    let cells = width.saturating_sub(3).clamp(10, 60) as u64;
    let whole = (usage.budget.tokens + usage.budget.reserve).max(1);
    let mut out = String::new();
    let (mut tokens, mut drawn) = (0, 0);
    for (row, mark) in usage.rows.iter().zip(MARKS) {
        tokens += row.tokens;
        let until = (tokens * cells / whole).min(cells);
        out.extend(std::iter::repeat_n(mark, usize::try_from(until.saturating_sub(drawn)).unwrap_or(0)));
        drawn = drawn.max(until);
    }
    let budget = usage.budget.tokens * cells / whole;
    let threshold = usage.threshold * cells / whole;
    for cell in drawn..cells {
        out.push(match cell {
            cell if cell == threshold => '│',
            cell if cell < budget => '·',
            _ => '░',
        });
    }
    format!("[{out}]")
}

/// Lays out the rows. On a narrow terminal, shares and layers are left out.
fn lay_out_rows(usage: &Fill, width: Option<usize>) -> String {
    const FEW: usize = 60;
    let rows = list_rows(usage);
    if width.is_none_or(|width| width >= FEW) {
        return lay_out_columns(&rows, width);
    }
    let narrow: Vec<[String; 3]> = rows.into_iter().map(|[mark, name, tokens, ..]| [mark, name, tokens]).collect();
    lay_out_columns(&narrow, width)
}

fn list_rows(usage: &Fill) -> Vec<[String; 5]> {
    let budget = usage.budget.tokens;
    let row = |mark: char, name: &str, tokens: u64, layer: &str| {
        let tenths = tokens.saturating_mul(1000) / budget.max(1);
        let share = format!("{:>3}.{} %", tenths / 10, tenths % 10);
        [mark.to_string(), name.to_owned(), format!("{tokens:>9}"), share, layer.to_owned()]
    };
    let used = usage.rows.iter().zip(MARKS).filter(|(row, _)| row.tokens > 0);
    let mut rows: Vec<[String; 5]> =
        used.map(|(kind, mark)| row(mark, kind.name, kind.tokens, kind.layer.name())).collect();
    rows.push(row(' ', "used", usage.used, ""));
    rows.push(row('·', "free", budget.saturating_sub(usage.used), ""));
    rows.push(row('░', "kept for the reply", usage.budget.reserve, "reserve"));
    rows
}

fn how_far(usage: &Fill) -> String {
    match usage.threshold.saturating_sub(usage.used) {
        0 => "The conversation is compressed before the next request.".to_owned(),
        left => format!("The conversation is compressed in {left} tokens, at {} (│).", usage.threshold),
    }
}

fn describe_window(usage: &Fill, model: &ModelInfo) -> String {
    let source = match model.window_source {
        WindowSource::Declared => "declared",
        WindowSource::Catalogue => "known",
        WindowSource::Assumed => "assumed: declare context_window",
    };
    let learned = match &usage.budget {
        budget if budget.tokens < budget.declared => ", as the server says",
        budget if budget.tokens < budget.whole => ", below the size from which the model costs more",
        _ => "",
    };
    format!("The budget is {}{learned}, the window {} ({source}).", usage.budget.tokens, usage.budget.window)
}

fn rests_on(basis: Basis) -> &'static str {
    match basis {
        Basis::Estimate => "These are estimates.",
        Basis::Counted => "Counted with the model's own encoding.",
        Basis::Nearest => {
            "Counted with a public encoding, with more for each kind of text: the model's own is not public."
        }
        Basis::Reported => "Counted by the provider; later parts are estimated.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::window::{Budget, FillRow, WindowLayer};
    use crate::base::text;

    #[test]
    fn the_bar_shows_kinds_the_threshold_and_the_reserve() {
        let row = |name, tokens| FillRow { name, layer: WindowLayer::History, tokens };
        let usage = Fill {
            rows: vec![
                row("system prompt", 10),
                row("tool definitions", 10),
                row("what you said", 0),
                row("words", 20),
            ],
            used: 40,
            budget: Budget { window: 100, reserve: 20, tokens: 80, declared: 80, whole: 80 },
            threshold: 64,
        };
        assert_eq!(draw_bar(&usage, 23), "[PPTTIIII····│···░░░░]");
        for width in 0..200 {
            assert!(text::count_columns(&draw_bar(&usage, width)) <= width.max(12), "{width}");
        }
    }
}
