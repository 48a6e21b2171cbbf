//! `agent model list / check / update`: the models that can be named, and the facts about them.

mod check;

use std::fmt::Write;

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::agent::assembly::{self, ListedModel, ModelListing};
use crate::base::text;
use crate::config::Prices;
use crate::model::catalogue::{Off, update};
use crate::model::effort::Effort;
use crate::safety::net::Net;

use super::args::{ModelCommand, ReportFormat};
use super::setup::{CliSetup, build_runtime};
use super::{CommandOutcome, exit, note_progress, print_json, print_text, tables, warn_person};

/// The age in days above which a catalogue should be updated.
const OLD: i32 = 120;

pub(super) fn run_model(setup: &CliSetup, command: ModelCommand) -> CommandOutcome {
    match command {
        ModelCommand::List { filter, output } => list_models(setup, &filter, output),
        ModelCommand::Check { name, log_wire, output } => check::check_model(setup, name, log_wire, output),
        ModelCommand::Update { source } => run_update(setup, &source),
    }
}

fn list_models(setup: &CliSetup, filter: &str, output: ReportFormat) -> CommandOutcome {
    let (_, config) = setup.load()?;
    let mut listing = assembly::list_models(&config, filter);
    let net = Net::new(|name| setup.env.get(name));
    match build_runtime()?.block_on(assembly::list_served(&config, &net, filter)) {
        Some(Ok(served)) => listing.models.extend(served),
        Some(Err(why)) => warn_person(&why),
        None => {}
    }
    listing.notice.iter().for_each(|notice| warn_person(notice));
    match output {
        ReportFormat::Json => print_json(&as_json(&listing)),
        ReportFormat::Text => {
            print_text(format_models(&listing.models, tables::find_edge()))?;
            note_progress(&state_age(&listing, Zoned::now().date()));
            Ok(exit::DONE)
        }
    }
}

fn run_update(setup: &CliSetup, source: &str) -> CommandOutcome {
    let net = Net::new(|name| setup.env.get(name));
    let (dir, today) = (setup.env.dirs().data, Zoned::now().date());
    let updated = build_runtime()?.block_on(update::update_catalogue(&net, source, &dir, today))?;
    let (rows, date, path) = (updated.rows, updated.date, updated.path.display());
    print_text(format!("{rows} models as of {date}, kept in {path}\n"))
}

/// States the date of the catalogue, with a hint if it should be updated.
fn state_age(listing: &ModelListing, today: Date) -> String {
    let days = today.since(listing.date).map_or(0, |span| span.get_days()).max(0);
    let hint = if days > OLD { ". Prices may have changed: agent model update FILE|URL" } else { "" };
    let days = if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
    format!("Catalogue of {}, {days} old, from {}{hint}", listing.date, text::make_visible(&listing.origin))
}

/// Formats one line per model, or two if the terminal is too narrow for one.
fn format_models(models: &[ListedModel], edge: Option<usize>) -> String {
    const INDENT: usize = 2;
    if models.is_empty() {
        return "No such model.\n".to_owned();
    }
    let cells: Vec<[String; 7]> = models.iter().map(list_cells).collect();
    let widths: [usize; 7] = std::array::from_fn(|column| {
        cells.iter().map(|row| text::count_columns(&row[column])).max().unwrap_or_default()
    });
    let room = edge.map_or(usize::MAX, |edge| edge.saturating_sub(1));
    // The last column is not counted: the few rows that have it may lose it, and the others stay on one line.
    let whole: usize = widths[..6].iter().map(|width| width + 2).sum::<usize>() - 2;
    let is_wide = whole <= room;
    let mut out = String::new();
    for row in &cells {
        let (name, facts) = row.split_first().expect("a row has a name");
        if is_wide {
            let _ = write!(out, "{name}{:1$}", "", widths[0] + 2 - text::count_columns(name));
        } else {
            let _ = write!(out, "{}\n{:INDENT$}", text::cut_to_width(name, room), "");
        }
        let room = room.saturating_sub(if is_wide { widths[0] + 2 } else { INDENT });
        let mut line = String::new();
        for (cell, width) in facts.iter().zip(&widths[1..]) {
            // A cell that does not fit is left out whole: half a price would be a wrong price.
            if text::count_columns(&line) + text::count_columns(cell) > room {
                break;
            }
            let _ = write!(line, "{cell}{:1$}", "", width + 2 - text::count_columns(cell));
        }
        out += line.trim_end();
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// The cells of a row: name, window, price, vision and reasoning levels, wire, source, end of life.
fn list_cells(model: &ListedModel) -> [String; 7] {
    let senses = [(model.sees == Some(true)).then(|| "sees".to_owned()), name_thinking(model.levels.as_deref())];
    [
        text::make_visible(&model.name).into_owned(),
        model.window_in_short(),
        model.price_in_short(),
        senses.into_iter().flatten().collect::<Vec<_>>().join(" "),
        model.wire.map_or_else(String::new, |wire| wire.name().to_owned()),
        if model.is_configured { "config" } else { "catalogue" }.to_owned(),
        model.ends.map_or_else(String::new, |day| format!("ends {day}")),
    ]
}

/// The range of levels above `none`, such as `low-max`.
fn name_thinking(levels: Option<&[Effort]>) -> Option<String> {
    let mut thoughts = levels?.iter().filter(|level| **level != Effort::None);
    let first = thoughts.next()?;
    Some(match thoughts.next_back() {
        Some(last) => format!("{}-{}", first.word(), last.word()),
        None => first.word().to_owned(),
    })
}

fn as_json(listing: &ModelListing) -> Value {
    let models: Vec<Value> = listing.models.iter().map(model_json).collect();
    json!({ "date": listing.date.to_string(), "origin": listing.origin, "models": models })
}

fn model_json(model: &ListedModel) -> Value {
    let off = model.off.map(|off| match off {
        Off::Level => "none",
        Off::Switch => "switch",
    });
    json!({
        "name": model.name,
        "id": model.id,
        "source": if model.is_configured { "config" } else { "catalogue" },
        "context_window": model.window,
        "max_input_tokens": model.input,
        "max_output_tokens": model.output,
        "prices": model.prices.as_ref().map(prices_json),
        "sees": model.sees,
        "levels": model.levels,
        "off": off,
        "wire": model.wire,
        "ends": model.ends.map(|day| day.to_string()),
    })
}

fn prices_json(prices: &Prices) -> Value {
    let mut json = json!(prices.base());
    json["tiers"] = json!(prices.tiers);
    json["about"] = prices.about.into();
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PriceTier;

    fn model(name: &str, window: Option<u64>, prices: Option<Prices>, levels: &[Effort]) -> ListedModel {
        ListedModel {
            name: name.to_owned(),
            id: None,
            is_configured: false,
            window,
            input: None,
            output: None,
            prices,
            sees: Some(true),
            levels: Some(levels.to_vec()),
            off: None,
            wire: Some(crate::config::Wire::Chat),
            ends: None,
        }
    }

    #[test]
    fn the_table_fits_the_terminal() {
        let tier = PriceTier { above: 9, input: 2.5, cached_input: None, cache_write: None, output: 10.0 };
        let models = [
            model("openrouter/anthropic/claude-sonnet-5", Some(1_050_000), None, &[Effort::None, Effort::Low]),
            model(
                "openai/m",
                None,
                Some(Prices::new(PriceTier { above: 0, ..tier }, vec![tier], true)),
                &[Effort::Low, Effort::Medium, Effort::Max],
            ),
        ];
        assert_eq!(
            format_models(&models, None),
            "openrouter/anthropic/claude-sonnet-5  1.05M  ?           sees low      chat  catalogue\n\
             openai/m                              ?      ~$2.5/$10+  sees low-max  chat  catalogue\n"
        );
        assert_eq!(
            format_models(&models, Some(42)),
            "openrouter/anthropic/claude-sonnet-5\n  1.05M  ?           sees low      chat\n\
             openai/m\n  ?      ~$2.5/$10+  sees low-max  chat\n"
        );
        assert_eq!(format_models(&models[1..], Some(30)), "openai/m\n  ?  ~$2.5/$10+  sees low-max\n");
        for edge in 3..100 {
            assert!(
                format_models(&models, Some(edge)).lines().all(|line| text::count_columns(line) < edge),
                "{edge}"
            );
        }
    }
}
