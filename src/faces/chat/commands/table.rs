//! The table of built-in commands.

use super::{CommandAnswer, CommandGroup, Completes, SlashCommand, SlashOutcome, later, now, tell_text};
use super::{context, conversation, help, messages, sessions, settings, undo};
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::screen::terminal;

/// The commands, in the order of `/help`.
pub const GROUPS: &[CommandGroup] = &[
    CommandGroup { heading: "Messages", commands: MESSAGES },
    CommandGroup { heading: "Agent and model", commands: AGENT },
    CommandGroup { heading: "Context", commands: CONTEXT },
    CommandGroup { heading: "Conversation", commands: CONVERSATION },
    CommandGroup { heading: "Chat", commands: CHAT },
];

const MESSAGES: &[SlashCommand] = &[
    now("editor", "write the message in your editor", |_, _| Ok(SlashOutcome::Compose)),
    now("now", "give a text to the turn that runs, as Alt-Up does", messages::send_now)
        .takes("TEXT", Completes::Nothing),
    now("image", "attach a picture to the next message", messages::attach_image).takes("PATH", Completes::Paths),
    now(
        "init",
        "let the model write AGENTS.md, the notes on this project for agents",
        messages::write_instructions,
    )
    .takes("[update]", Completes::Words(&["update"])),
];

const AGENT: &[SlashCommand] = &[
    later("model", "pick another model, or how much it reasons", settings::change_model)
        .takes("[NAME] [LEVEL]", Completes::Models),
    now("agent", "list the agents, or let another one answer", settings::change_agent)
        .takes("[NAME]", Completes::Agents),
    now("mode", "list the modes, or carry out what follows in another", settings::change_mode)
        .takes("[NAME]", Completes::Modes),
    now("plan", "show the plan; let one that waits go on, or give it up", settings::show_plan)
        .takes("[go | drop]", Completes::Words(&["go", "drop"])),
    now("prompt", "list the prompts, or use another as the system prompt", settings::change_prompt)
        .takes("[NAME[@VERSION]]", Completes::Prompts),
    now("tools", "list the tools that the model may call", |chat, _| {
        tell_text(tables::list_tools(chat.services.agent.tools.all()))
    }),
    now("mcp", "list the servers of tools, and how each is", settings::show_servers),
    now("approve", "show what runs without a question, or change it", settings::change_approval)
        .takes("[MODE]", Completes::Approvals),
    now("set", "change the configuration of this chat, or show what was set in it", settings::change_setting)
        .takes("[KEY=VALUE]", Completes::Keys),
];

const CONTEXT: &[SlashCommand] = &[
    now("context", "show what the next request holds", context::show_context),
    now("skills", "list the skills, and which are loaded", context::show_skills),
    now("skill", "load a skill, for the task or the next message", context::load_skill)
        .takes("NAME [TASK]", Completes::Skills),
    now("unload", "take a skill out of what is sent", context::drop_skill).takes("SKILL", Completes::Skills),
    later("compact", "make room in the context; FOCUS is kept above all", context::compact_history)
        .takes("[--dry-run | FOCUS]", Completes::Words(&["--dry-run"])),
    now("uncompact", "send everything again as it was said", context::undo_compaction),
    now(
        "pin",
        "keep the last exchange, or the message with this id or TEXT, out of every compression",
        context::pin_text,
    )
    .takes("[ID | TEXT]", Completes::Nothing),
    now("unpin", "take back the last pin, or that of a message", context::unpin_text)
        .takes("[ID | TEXT]", Completes::Nothing),
    now("recall", "read what is no longer sent, by its id or by words in it", context::recall_text)
        .takes("ID | WORDS", Completes::Nothing),
];

const CONVERSATION: &[SlashCommand] = &[
    now(
        "last",
        "show the output of the last call, the Nth last or number N in full; or calls, answer, reasoning",
        conversation::show_last,
    )
    .takes("[N | #N | WORD]", Completes::Words(&["calls", "answer", "reasoning"])),
    now("copy", "copy the last answer, or its Nth code block", conversation::copy_answer)
        .takes("[N]", Completes::Nothing),
    now(
        "undo",
        "take your last message back, or the last N, and what changed in files since",
        undo::undo_messages,
    )
    .takes("[N | NAME] [--force]", Completes::Words(&["--force"])),
    now("redo", "take the last undo back", undo::redo_messages).takes("[--force]", Completes::Words(&["--force"])),
    now("diff", "show what changed in files since your last message, or the last N", undo::show_diff)
        .takes("[--since N]", Completes::Words(&["--since"])),
    now("cost", "show what this conversation has cost so far", conversation::show_cost),
    now("stats", "show its figures, tool by tool", conversation::show_stats),
    later("clear", "begin a new conversation", conversation::clear_chat),
    later("resume", "go on with an earlier conversation", sessions::resume_session)
        .or("sessions")
        .takes("[ID | TITLE]", Completes::Nothing),
    later(
        "fork",
        "go on with a copy of this conversation, or of what was before a message",
        sessions::fork_session,
    )
    .takes("[ID | NAME]", Completes::Nothing),
    now("checkpoint", "name this place, to come back to it, or list the names", sessions::mark_checkpoint)
        .takes("[NAME]", Completes::Nothing),
    now("export", "write this conversation to a file: .md, .html, .json, .jsonl", sessions::export_session)
        .or("save")
        .takes("[FILE]", Completes::Paths),
    now("rename", "give this conversation a title, or take that back", sessions::rename_session)
        .takes("[TITLE]", Completes::Nothing),
];

const CHAT: &[SlashCommand] = &[
    now("help", "list the commands, or explain one", help_of).takes("[COMMAND]", Completes::Commands),
    now("raw", "show answers as the model writes them, or laid out again", messages::toggle_raw),
    now("exit", "leave (Ctrl-D does too)", |_, _| Ok(SlashOutcome::Leave)).or("quit"),
];

/// All commands.
pub fn list_commands() -> impl Iterator<Item = &'static SlashCommand> {
    GROUPS.iter().flat_map(|group| group.commands)
}

/// `/SERVER:PROMPT …`, which no table lists: servers of tools have them.
pub static OF_SERVER: SlashCommand =
    later("SERVER:PROMPT", "send the prompt of a server of tools", settings::send_server_prompt);

/// Finds a command by its name or alias.
pub fn find_command(name: &str) -> Option<&'static SlashCommand> {
    list_commands().find(|command| command.names().any(|known| known == name))
}

fn help_of(chat: &mut Chat, name: &str) -> CommandAnswer {
    tell_text(help::render_help(name, GROUPS, &chat.own, terminal::measure_width().unwrap_or(80)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::text;
    use crate::config::OwnCommand;

    #[test]
    fn help_shows_every_command_once() {
        let help = help::render_help("", GROUPS, &[], 80);
        for command in list_commands() {
            for name in command.names() {
                let words = help.split(|c: char| !c.is_alphanumeric() && c != '/');
                let shown = words.filter(|word| word.strip_prefix('/') == Some(name));
                assert_eq!(shown.count(), 1, "{name}");
            }
        }
        assert_eq!(help::render_help("/exit", GROUPS, &[], 80), "/exit  leave (Ctrl-D does too); also /quit\n");
    }

    #[test]
    fn help_fits_the_screen_with_own_commands_beside_the_others() {
        let own = OwnCommand {
            name: "ship".to_owned(),
            about: "Build, test and release what was changed since the last release.".to_owned(),
            hint: "[VERSION]".to_owned(),
            model: Some("fast".to_owned()),
            origin: "commands/ship.md".to_owned(),
            ..OwnCommand::default()
        };
        for width in [40, 60, 80, 200] {
            let help = help::render_help("", GROUPS, std::slice::from_ref(&own), width);
            let widest = help.lines().map(text::count_columns).max();
            assert!(widest.is_some_and(|widest| widest < width), "{width}:\n{help}");
        }
        insta::assert_snapshot!("help_80", help::render_help("", GROUPS, std::slice::from_ref(&own), 80));
        insta::assert_snapshot!("help_40", help::render_help("", GROUPS, std::slice::from_ref(&own), 40));
        assert_eq!(
            help::render_help("ship", GROUPS, std::slice::from_ref(&own), 80),
            "/ship [VERSION]  Build, test and release what was changed since the last release.; asks fast\n\
             commands/ship.md\n"
        );
    }

    #[test]
    fn the_page_explains_every_command() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/chat-commands.md");
        let page = std::fs::read_to_string(page).expect("the page is text");
        for name in list_commands().flat_map(SlashCommand::names) {
            let is_named = [format!("`/{name}`"), format!("`/{name} ")].iter().any(|named| page.contains(named));
            assert!(is_named, "/{name} is not in docs/chat-commands.md");
        }
    }
}
