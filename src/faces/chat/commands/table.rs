//! The table of built-in commands.

use super::{CommandAnswer, CommandFunction, CommandGroup, Completes, SlashCommand, SlashOutcome};
use super::{context, conversation, help, last, messages, mode, models, prompts, settings, show_last, skills};
use crate::faces::chat::chat_session::Chat;
use crate::screen::terminal;

/// The commands. Within a group, `/help` shows them in this order.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        names: &["editor"],
        argument: "",
        about: "write the message in your editor",
        group: CommandGroup::Message,
        completes: Completes::Nothing,
        run: CommandFunction::Now(messages::open_editor),
    },
    SlashCommand {
        names: &["image"],
        argument: "PATH",
        about: "attach a picture to the next message",
        group: CommandGroup::Message,
        completes: Completes::Paths,
        run: CommandFunction::Now(messages::attach_image),
    },
    SlashCommand {
        names: &["init"],
        argument: "[update]",
        about: "let the model write AGENTS.md, the notes on this project for agents",
        group: CommandGroup::Message,
        completes: Completes::Words(&["update"]),
        run: CommandFunction::Now(messages::write_instructions),
    },
    SlashCommand {
        names: &["model"],
        argument: "[NAME] [LEVEL]",
        about: "pick another model, or how much it reasons",
        group: CommandGroup::Agent,
        completes: Completes::Models,
        run: CommandFunction::Later(models::change_model),
    },
    SlashCommand {
        names: &["agent"],
        argument: "[NAME]",
        about: "list the agents, or let another one answer",
        group: CommandGroup::Agent,
        completes: Completes::Agents,
        run: CommandFunction::Now(models::change_agent),
    },
    SlashCommand {
        names: &["mode"],
        argument: "[NAME]",
        about: "list the modes, or carry out what follows in another",
        group: CommandGroup::Agent,
        completes: Completes::Modes,
        run: CommandFunction::Now(mode::change_mode),
    },
    SlashCommand {
        names: &["plan"],
        argument: "[drop]",
        about: "show the plan and how far it has come, or give it up",
        group: CommandGroup::Agent,
        completes: Completes::Words(&["drop"]),
        run: CommandFunction::Now(mode::show_plan),
    },
    SlashCommand {
        names: &["prompt"],
        argument: "[NAME[@VERSION]]",
        about: "list the prompts, or use another as the system prompt",
        group: CommandGroup::Agent,
        completes: Completes::Prompts,
        run: CommandFunction::Now(prompts::change_prompt),
    },
    SlashCommand {
        names: &["tools"],
        argument: "",
        about: "list the tools that the model may call",
        group: CommandGroup::Agent,
        completes: Completes::Nothing,
        run: CommandFunction::Now(models::show_tools),
    },
    SlashCommand {
        names: &["approve"],
        argument: "[MODE]",
        about: "show what runs without a question, or change it",
        group: CommandGroup::Agent,
        completes: Completes::Approvals,
        run: CommandFunction::Now(settings::change_approval),
    },
    SlashCommand {
        names: &["set"],
        argument: "[KEY=VALUE]",
        about: "change the configuration of this chat, or show what was set in it",
        group: CommandGroup::Agent,
        completes: Completes::Keys,
        run: CommandFunction::Now(settings::change_setting),
    },
    SlashCommand {
        names: &["context"],
        argument: "",
        about: "show what the next request holds",
        group: CommandGroup::Context,
        completes: Completes::Nothing,
        run: CommandFunction::Now(context::show_context),
    },
    SlashCommand {
        names: &["skills"],
        argument: "",
        about: "list the skills, and which are loaded",
        group: CommandGroup::Context,
        completes: Completes::Nothing,
        run: CommandFunction::Now(skills::show_skills),
    },
    SlashCommand {
        names: &["skill"],
        argument: "NAME [TASK]",
        about: "load a skill, for the task or the next message",
        group: CommandGroup::Context,
        completes: Completes::Skills,
        run: CommandFunction::Now(skills::load_skill),
    },
    SlashCommand {
        names: &["unload"],
        argument: "SKILL",
        about: "take a skill out of what is sent",
        group: CommandGroup::Context,
        completes: Completes::Skills,
        run: CommandFunction::Now(skills::drop_skill),
    },
    SlashCommand {
        names: &["compact"],
        argument: "[--dry-run | FOCUS]",
        about: "make room in the context; FOCUS is kept above all",
        group: CommandGroup::Context,
        completes: Completes::Words(&["--dry-run"]),
        run: CommandFunction::Later(context::compact_history),
    },
    SlashCommand {
        names: &["uncompact"],
        argument: "",
        about: "send everything again as it was said",
        group: CommandGroup::Context,
        completes: Completes::Nothing,
        run: CommandFunction::Now(context::undo_compaction),
    },
    SlashCommand {
        names: &["pin"],
        argument: "[TEXT]",
        about: "keep the last exchange, or messages that contain TEXT, out of every compression",
        group: CommandGroup::Context,
        completes: Completes::Nothing,
        run: CommandFunction::Now(context::pin_text),
    },
    SlashCommand {
        names: &["recall"],
        argument: "ID | WORDS",
        about: "read what is no longer sent, by its id or by words in it",
        group: CommandGroup::Context,
        completes: Completes::Nothing,
        run: CommandFunction::Now(context::recall_text),
    },
    SlashCommand {
        names: &["last"],
        argument: "[N | #N | WORD]",
        about: "show the output of the last call, the Nth last or number N in full; or calls, answer, reasoning",
        group: CommandGroup::Conversation,
        completes: Completes::Words(&["calls", "answer", "reasoning"]),
        run: CommandFunction::Now(show_last),
    },
    SlashCommand {
        names: &["copy"],
        argument: "[N]",
        about: "copy the last answer, or its Nth code block",
        group: CommandGroup::Conversation,
        completes: Completes::Nothing,
        run: CommandFunction::Now(last::copy_answer),
    },
    SlashCommand {
        names: &["cost"],
        argument: "",
        about: "show what this conversation has cost so far",
        group: CommandGroup::Conversation,
        completes: Completes::Nothing,
        run: CommandFunction::Now(conversation::show_cost),
    },
    SlashCommand {
        names: &["stats"],
        argument: "",
        about: "show its figures, tool by tool",
        group: CommandGroup::Conversation,
        completes: Completes::Nothing,
        run: CommandFunction::Now(conversation::show_stats),
    },
    SlashCommand {
        names: &["clear"],
        argument: "",
        about: "begin a new conversation",
        group: CommandGroup::Conversation,
        completes: Completes::Nothing,
        run: CommandFunction::Now(conversation::clear_chat),
    },
    SlashCommand {
        names: &["help"],
        argument: "[COMMAND]",
        about: "list the commands, or explain one",
        group: CommandGroup::Chat,
        completes: Completes::Commands,
        run: CommandFunction::Now(help_of),
    },
    SlashCommand {
        names: &["raw"],
        argument: "",
        about: "show answers as the model writes them, or laid out again",
        group: CommandGroup::Chat,
        completes: Completes::Nothing,
        run: CommandFunction::Now(messages::toggle_raw),
    },
    SlashCommand {
        names: &["exit", "quit"],
        argument: "",
        about: "leave (Ctrl-D does too)",
        group: CommandGroup::Chat,
        completes: Completes::Nothing,
        run: CommandFunction::Now(conversation::exit_chat),
    },
];

/// Finds a command by its name or alias.
pub fn find_command(name: &str) -> Option<&'static SlashCommand> {
    COMMANDS.iter().find(|command| command.names.contains(&name))
}

fn help_of(chat: &mut Chat, name: &str) -> CommandAnswer {
    let width = terminal::measure_width().unwrap_or(80);
    Ok(SlashOutcome::Tell(help::render_help(name, COMMANDS, &chat.own, width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::text;
    use crate::config::OwnCommand;

    #[test]
    fn help_shows_every_command_once() {
        let help = help::render_help("", COMMANDS, &[], 80);
        for command in COMMANDS {
            for name in command.names {
                let words = help.split(|c: char| !c.is_alphanumeric() && c != '/');
                let shown = words.filter(|word| word.strip_prefix('/') == Some(name));
                assert_eq!(shown.count(), 1, "{name}");
            }
        }
        assert_eq!(help::render_help("/exit", COMMANDS, &[], 80), "/exit  leave (Ctrl-D does too); also /quit\n");
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
            let help = help::render_help("", COMMANDS, std::slice::from_ref(&own), width);
            let widest = help.lines().map(text::count_columns).max();
            assert!(widest.is_some_and(|widest| widest < width), "{width}:\n{help}");
        }
        insta::assert_snapshot!("help_80", help::render_help("", COMMANDS, std::slice::from_ref(&own), 80));
        insta::assert_snapshot!("help_40", help::render_help("", COMMANDS, std::slice::from_ref(&own), 40));
        assert_eq!(
            help::render_help("ship", COMMANDS, std::slice::from_ref(&own), 80),
            "/ship [VERSION]  Build, test and release what was changed since the last release.; asks fast\n\
             commands/ship.md\n"
        );
    }

    #[test]
    fn the_page_explains_every_command() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/chat-commands.md");
        let page = std::fs::read_to_string(page).expect("the page is text");
        for name in COMMANDS.iter().flat_map(|command| command.names) {
            let is_named = [format!("`/{name}`"), format!("`/{name} ")].iter().any(|named| page.contains(named));
            assert!(is_named, "/{name} is not in docs/chat-commands.md");
        }
    }
}
