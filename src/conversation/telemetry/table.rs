//! The figures for people: a table if it fits, else a few short lines for each tool.

use super::report::{Figures, SessionReport, Steps};
use crate::base::text;

const HEADINGS: [&str; 8] = ["tool", "calls", "failed", "denied", "retries", "mean", "p95", "~tokens"];

/// The report as text, with its last line feed. No line is wider than `width`, if one is given and words allow it.
pub fn format_report(report: &SessionReport, model: &str, width: Option<usize>) -> String {
    let mut out = String::new();
    for line in format_steps(model, &report.steps) {
        out += &line;
        out.push('\n');
    }
    if report.total.calls == 0 {
        return out + "No tool was called.\n";
    }
    out.push('\n');
    let total = [("in all", &report.total)];
    let rows: Vec<(&str, &Figures)> =
        report.tools.iter().map(|(name, figures)| (name.as_str(), figures)).chain(total).collect();
    let wide = align_rows(&rows);
    let room = width.unwrap_or(usize::MAX);
    let fits = wide.lines().all(|line| text::count_columns(line) <= room);
    out += &if fits { wide } else { stack_rows(&rows) };
    out += &format_processes(&report.total);
    out
}

/// The figures in one line: cost, tokens, steps and calls.
pub fn format_line(report: &SessionReport) -> String {
    let steps = &report.steps;
    let counts = [format_count(steps.count, "step"), format_count(report.total.calls, "call")];
    let parts = format_cost(steps).into_iter().chain([tokens_in(steps), tokens_out(steps)]).chain(counts);
    parts.collect::<Vec<_>>().join(" · ")
}

/// The cost of the model.
fn format_steps(model: &str, steps: &Steps) -> Vec<String> {
    let lines = [format!("{model}: {}", format_count(steps.count, "step")), tokens_in(steps), tokens_out(steps)];
    lines.into_iter().chain(format_cost(steps)).collect()
}

fn tokens_in(Steps { usage, .. }: &Steps) -> String {
    let cached = format_percent(usage.cached_input_tokens, usage.input_tokens);
    format!("{} tokens in, {cached} cached", group_digits(usage.input_tokens))
}

fn tokens_out(Steps { usage, .. }: &Steps) -> String {
    let estimated = if usage.estimated { " (estimated)" } else { "" };
    format!("{} tokens out{estimated}", group_digits(usage.output_tokens))
}

/// USD; nothing if nothing was spent.
fn format_cost(Steps { usage, cost_usd, .. }: &Steps) -> Option<String> {
    let about = if usage.cost_about { "~" } else { "" };
    match cost_usd {
        Some(cost) => Some(format!("{about}${cost:.4}")),
        None if usage.total() > 0 => Some("cost unknown".to_owned()),
        None => None,
    }
}

fn format_count(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// One line per tool; numbers are aligned to the right.
fn align_rows(rows: &[(&str, &Figures)]) -> String {
    const GAP: &str = "  ";
    let cells: Vec<[String; 8]> = [HEADINGS.map(str::to_owned)]
        .into_iter()
        .chain(rows.iter().map(|(name, figures)| {
            [
                text::make_visible(name).into_owned(),
                figures.calls.to_string(),
                format_percent(figures.errors, figures.calls),
                figures.denied.to_string(),
                figures.retries.to_string(),
                format_duration(figures.mean_ms()),
                format_duration(figures.p95_ms()),
                group_digits(figures.output_tokens),
            ]
        }))
        .collect();
    let widths: [usize; 8] =
        std::array::from_fn(|at| cells.iter().map(|row| text::count_columns(&row[at])).max().unwrap_or(0));
    let mut out = String::new();
    for row in &cells {
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let space = " ".repeat(width - text::count_columns(cell));
            let parts = if at == 0 { ["", cell.as_str(), &space] } else { [GAP, &space, cell.as_str()] };
            out.extend(parts);
        }
        out.push('\n');
    }
    out
}

fn stack_rows(rows: &[(&str, &Figures)]) -> String {
    let lines = |(name, figures): &(&str, &Figures)| {
        let Figures { calls, errors, denied, retries, .. } = figures;
        let refused = if *denied == 0 { String::new() } else { format!(", {denied} denied") };
        let name = text::make_visible(name);
        format!(
            "{name}\n  {calls} {}, {} failed{refused}\n  {retries} retries, about {} tokens\n  mean {}, p95 {}\n",
            if *calls == 1 { "call" } else { "calls" },
            format_percent(*errors, *calls),
            group_digits(figures.output_tokens),
            format_duration(figures.mean_ms()),
            format_duration(figures.p95_ms()),
        )
    };
    rows.iter().map(lines).collect::<Vec<_>>().concat()
}

/// CPU time and memory of commands, if known.
fn format_processes(total: &Figures) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    let cpu = total.cpu_ms.map(|cpu| format!("commands: {} of processor time\n", format_duration(Some(cpu))));
    let memory = total.peak_memory_bytes.map(|bytes| format!("          {} MiB at most\n", bytes / MEBIBYTE));
    cpu.unwrap_or_default() + &memory.unwrap_or_default()
}

/// `0.4 ms`, `12 ms`, `3.2 s`; `-` if nothing ran.
fn format_duration(milliseconds: Option<f64>) -> String {
    match milliseconds {
        None => "-".to_owned(),
        Some(ms) if ms < 9.95 => format!("{ms:.1} ms"),
        Some(ms) if ms < 999.5 => format!("{ms:.0} ms"),
        Some(ms) => format!("{:.1} s", ms / 1000.0),
    }
}

/// A share in whole per cent; a share above 0 is never shown as 0.
fn format_percent(part: u64, whole: u64) -> String {
    if part == 0 {
        return "0%".to_owned();
    }
    format!("{}%", (part * 100 / whole.max(1)).max(1))
}

/// `1,234,567`
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::report::Tally;
    use super::*;
    use crate::conversation::event::CallTelemetry;
    use crate::conversation::message::Usage;

    fn report() -> SessionReport {
        let call = |name: &str, latency_ms: Option<f64>, code: Option<&str>| CallTelemetry {
            tool_name: name.to_owned(),
            latency_ms,
            output_tokens: 600,
            success: code.is_none(),
            error_code: code.map(str::to_owned),
            cpu_ms: latency_ms.filter(|_| name == "run_command"),
            ..CallTelemetry::default()
        };
        let calls = [
            call("read_file", Some(0.25), None),
            call("read_file", Some(0.75), Some("permanent")),
            call("run_command", Some(2500.0), None),
            call("load_skill_reference", None, Some("denied")),
        ];
        let usage =
            Usage { input_tokens: 12_345, cached_input_tokens: 6000, output_tokens: 99, ..Usage::default() };
        SessionReport::new(Steps { count: 3, usage, cost_usd: Some(0.0123) }, &calls.iter().collect())
    }

    #[test]
    fn a_wide_table() {
        insta::assert_snapshot!(format_report(&report(), "gpt-5-mini", None), @r"
        gpt-5-mini: 3 steps
        12,345 tokens in, 48% cached
        99 tokens out
        $0.0123

        tool                  calls  failed  denied  retries    mean     p95  ~tokens
        load_skill_reference      1      0%       1        0       -       -      600
        read_file                 2     50%       0        0  0.5 ms  0.8 ms    1,200
        run_command               1      0%       0        0   2.5 s   2.5 s      600
        in all                    4     25%       1        0  834 ms   2.5 s    2,400
        commands: 2.5 s of processor time
        ");
    }

    #[test]
    fn one_line_has_the_sums() {
        let sums = "$0.0123 · 12,345 tokens in, 48% cached · 99 tokens out · 3 steps · 4 calls";
        assert_eq!(format_line(&report()), sums);
        let nothing = "0 tokens in, 0% cached · 0 tokens out · 0 steps · 0 calls";
        assert_eq!(format_line(&SessionReport::new(Steps::default(), &Tally::default())), nothing);
    }

    #[test]
    fn forty_columns_are_enough() {
        let narrow = format_report(&report(), "gpt-5-mini", Some(40));
        assert!(narrow.lines().all(|line| text::count_columns(line) < 40), "{narrow}");
        insta::assert_snapshot!(narrow, @r"
        gpt-5-mini: 3 steps
        12,345 tokens in, 48% cached
        99 tokens out
        $0.0123

        load_skill_reference
          1 call, 0% failed, 1 denied
          0 retries, about 600 tokens
          mean -, p95 -
        read_file
          2 calls, 50% failed
          0 retries, about 1,200 tokens
          mean 0.5 ms, p95 0.8 ms
        run_command
          1 call, 0% failed
          0 retries, about 600 tokens
          mean 2.5 s, p95 2.5 s
        in all
          4 calls, 25% failed, 1 denied
          0 retries, about 2,400 tokens
          mean 834 ms, p95 2.5 s
        commands: 2.5 s of processor time
        ");
    }

    #[test]
    fn nothing_was_called() {
        let report = SessionReport::new(Steps::default(), &Tally::default());
        assert_eq!(
            format_report(&report, "m", None),
            "m: 0 steps\n0 tokens in, 0% cached\n0 tokens out\nNo tool was called.\n"
        );
    }
}
