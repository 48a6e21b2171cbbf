//! The figures of many sessions, by the version of their system prompt, which show whether a new version is better.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::report::SessionReport;

/// The figures of a session that count for its prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionFigures {
    pub turns: u64,
    /// The number of turns that ended with each exit code.
    pub codes: BTreeMap<u8, u64>,
    pub report: SessionReport,
}

/// The sums over the sessions of one version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VersionFigures {
    pub sessions: u64,
    pub turns: u64,
    /// The number of turns that ended with each exit code. A turn without one was cut off.
    pub codes: BTreeMap<u8, u64>,
    pub steps: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// USD, of the sessions whose cost is known.
    pub cost_usd: Option<f64>,
    /// Tool calls, and those of them that failed.
    pub calls: u64,
    pub call_errors: u64,
}

/// Adds sessions up by their prompt (`system@v2.0#0123456789ab`).
pub fn by_prompt(
    sessions: impl IntoIterator<Item = (String, SessionFigures)>,
) -> BTreeMap<String, VersionFigures> {
    let mut versions: BTreeMap<String, VersionFigures> = BTreeMap::new();
    for (prompt, session) in sessions {
        versions.entry(prompt).or_default().add(&session);
    }
    versions
}

impl VersionFigures {
    fn add(&mut self, session: &SessionFigures) {
        let SessionFigures { turns, codes, report } = session;
        self.sessions += 1;
        self.turns += turns;
        for (code, count) in codes {
            *self.codes.entry(*code).or_default() += count;
        }
        self.steps += report.steps.count;
        self.input_tokens += report.steps.usage.input_tokens;
        self.output_tokens += report.steps.usage.output_tokens;
        self.cost_usd = report.steps.cost_usd.map(|cost| cost + self.cost_usd.unwrap_or(0.0)).or(self.cost_usd);
        self.calls += report.total.calls;
        self.call_errors += report.total.errors;
    }
}

/// The headings of [`format_row`].
pub const VERSION_HEADINGS: [&str; 9] = [
    "prompt", "sessions", "turns", "done", "other codes", "steps/turn", "tokens/turn", "cost/turn", "failed calls",
];

/// A version as a row of a table; figures are averages per turn.
pub fn format_row(prompt: &str, figures: &VersionFigures) -> [String; 9] {
    let each = |sum: u64| if figures.turns == 0 { 0.0 } else { divide(sum, figures.turns) };
    let (done, ended) = (figures.codes.get(&0).copied().unwrap_or(0), figures.codes.values().sum::<u64>());
    let codes =
        figures.codes.iter().filter(|(code, _)| **code != 0).map(|(code, count)| format!("{code}×{count}"));
    let codes: Vec<String> = codes.collect();
    let tokens = each(figures.input_tokens + figures.output_tokens);
    let cost = figures.cost_usd.filter(|_| figures.turns > 0);
    [
        prompt.to_owned(),
        figures.sessions.to_string(),
        figures.turns.to_string(),
        if ended == 0 { "-".to_owned() } else { format!("{:.0} %", 100.0 * divide(done, ended)) },
        if codes.is_empty() { "-".to_owned() } else { codes.join(" ") },
        format!("{:.1}", each(figures.steps)),
        format!("{tokens:.0}"),
        cost.map_or_else(|| "-".to_owned(), |cost| format!("${:.4}", cost * divide(1, figures.turns))),
        if figures.calls == 0 {
            "-".to_owned()
        } else {
            format!("{:.1} %", 100.0 * divide(figures.call_errors, figures.calls))
        },
    ]
}

/// A version as data.
pub fn version_json(prompt: &str, figures: &VersionFigures) -> Value {
    json!({
        "prompt": prompt,
        "sessions": figures.sessions,
        "turns": figures.turns,
        "exit_codes": figures.codes.iter().map(|(code, count)| (code.to_string(), json!(count))).collect::<serde_json::Map<_, _>>(),
        "steps": figures.steps,
        "gen_ai.usage.input_tokens": figures.input_tokens,
        "gen_ai.usage.output_tokens": figures.output_tokens,
        "cost_usd": figures.cost_usd,
        "tool_calls": figures.calls,
        "tool_errors": figures.call_errors,
    })
}

fn divide(sum: u64, count: u64) -> f64 {
    sum as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::super::{Steps, Tally};
    use super::*;
    use crate::conversation::message::Usage;

    fn session(turns: u64, codes: &[(u8, u64)], tokens: u64) -> SessionFigures {
        let usage = Usage { input_tokens: tokens, output_tokens: 10, ..Usage::default() };
        let steps = Steps { count: turns * 2, usage, cost_usd: Some(0.5) };
        SessionFigures {
            turns,
            codes: codes.iter().copied().collect(),
            report: SessionReport::new(steps, &Tally::default()),
        }
    }

    #[test]
    fn sessions_add_up_by_their_prompt() {
        let versions = by_prompt([
            ("system@v1.0#a".to_owned(), session(1, &[(0, 1)], 90)),
            ("system@v2.0#b".to_owned(), session(1, &[(8, 1)], 90)),
            ("system@v1.0#a".to_owned(), session(3, &[(0, 1), (8, 1)], 190)),
        ]);
        let shown: Vec<[String; 9]> =
            versions.iter().map(|(prompt, figures)| format_row(prompt, figures)).collect();
        assert_eq!(
            shown[0],
            ["system@v1.0#a", "2", "4", "67 %", "8×1", "2.0", "75", "$0.2500", "-"].map(str::to_owned)
        );
        assert_eq!(shown[1][3], "0 %");
        assert_eq!(version_json("p", &versions["system@v1.0#a"])["exit_codes"], json!({ "0": 2, "8": 1 }));
    }
}
