//! `/help`: formats all commands by group, or one; and the message for an unknown name. Pure functions.

use super::{CommandGroup, SlashCommand};
use crate::base::text;
use crate::config::OwnCommand;

/// On a narrower screen, descriptions are below their commands.
const WIDE: usize = 60;
/// The largest column at which descriptions start.
const COLUMN: usize = 24;
const INDENT: usize = 2;

const KEYS: [[&str; 2]; 11] = [
    ["@path", "attach a file of the workspace (Tab finds it by a few letters)"],
    ["!command", "run a command in your own shell; the model gets its output"],
    ["!!command", "the same for you alone, with the whole terminal"],
    ["//text", "a message that begins with a slash"],
    ["\\ at the end", "continues the message in the next line; so does Alt-Enter"],
    ["\"\"\"", "begins and ends a message of several lines"],
    ["Ctrl-C", "stops the model, or clears the line (Up brings it back); Esc stops the model too"],
    ["Ctrl-O", "shows the full output of the last call, while the model works too"],
    ["Ctrl-R", "searches the history; Right or End take the grey hint from it"],
    ["Alt-E", "goes on in your editor; so does Ctrl-X Ctrl-E"],
    ["Esc Esc", "takes the last message back into the line (not with the keys of vi)"],
];

/// Renders `/help`: all commands for a screen of `width` columns, or the one of this name.
pub fn render_help(name: &str, groups: &[CommandGroup], own: &[OwnCommand], width: usize) -> String {
    let name = name.trim_start_matches('/');
    if name.is_empty() {
        return list_all(groups, own, width);
    }
    let mut commands = groups.iter().flat_map(|group| group.commands);
    let command = commands.find(|command| command.names().any(|known| known == name));
    match (command, own.iter().find(|own| own.name == name)) {
        (Some(command), _) => format!("{}  {}\n", write_usage(command), describe_command(command)),
        (None, Some(own)) => {
            let model = own.model.as_ref().map(|model| format!("; asks {model}")).unwrap_or_default();
            format!("{}  {}{model}\n{}\n", own_usage(own), own.about, own.origin)
        }
        (None, None) => refuse_unknown(name, groups, own) + "\n",
    }
}

/// The message for a name that is not a command.
pub fn refuse_unknown(name: &str, groups: &[CommandGroup], own: &[OwnCommand]) -> String {
    let shown = text::one_line(name, 40);
    let mut names: Vec<&str> =
        groups.iter().flat_map(|group| group.commands).flat_map(SlashCommand::names).collect();
    names.extend(own.iter().map(|own| own.name.as_str()));
    match text::guess_meant(&name.to_lowercase(), names) {
        Some(near) => format!("/{shown}: did you mean /{near}?"),
        None => format!("/{shown}: there is no such command. /help lists them; // sends a slash."),
    }
}

fn list_all(groups: &[CommandGroup], own: &[OwnCommand], width: usize) -> String {
    let row = |command: &SlashCommand| [write_usage(command), describe_command(command)];
    let mut sections: Vec<(&str, Vec<[String; 2]>)> =
        groups.iter().map(|group| (group.heading, group.commands.iter().map(row).collect())).collect();
    let rows: Vec<[String; 2]> = own.iter().map(|own| [own_usage(own), own.about.clone()]).collect();
    sections.extend((!rows.is_empty()).then_some(("Your own", rows)));
    sections.push(("Keys", KEYS.map(|row| row.map(str::to_owned)).to_vec()));
    let usages = sections.iter().flat_map(|(_, rows)| rows).map(|[usage, _]| text::count_columns(usage));
    let column = INDENT + usages.filter(|width| *width <= COLUMN).max().unwrap_or(0) + 2;
    let mut help = String::new();
    for (heading, rows) in sections {
        if !help.is_empty() {
            help.push('\n');
        }
        help += heading;
        help.push('\n');
        for [usage, about] in rows {
            add_row(&mut help, &usage, &about, column, width);
        }
    }
    help
}

/// Adds one command, with its description beside it, or below it if that does not fit.
fn add_row(help: &mut String, usage: &str, about: &str, column: usize, width: usize) {
    let (column, is_wide) = if width < WIDE { (INDENT + 2, false) } else { (column, true) };
    let usage = format!("{}{usage}", " ".repeat(INDENT));
    let used = text::count_columns(&usage);
    *help += &usage;
    let mut at = if is_wide && used + 2 <= column { used } else { width };
    for line in text::fold_to_width(about, width.saturating_sub(column + 1).max(8)).lines() {
        if at > column {
            help.push('\n');
            at = 0;
        }
        *help += &" ".repeat(column - at);
        *help += line.trim_start();
        at = width;
    }
    help.push('\n');
}

fn write_usage(command: &SlashCommand) -> String {
    format!("/{} {}", command.name, command.argument).trim_end().to_owned()
}

fn own_usage(own: &OwnCommand) -> String {
    format!("/{} {}", own.name, own.hint).trim_end().to_owned()
}

fn describe_command(command: &SlashCommand) -> String {
    let other = command.alias.map(|alias| format!("; also /{alias}"));
    command.about.to_owned() + &other.unwrap_or_default()
}
