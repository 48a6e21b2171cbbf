//! The table of built-in commands.

use super::{Answer, Command, Completes, Group, Outcome, Run};
use super::{context, conversation, help, last, messages, mode, models, prompts, settings, skills};
use crate::faces::chat::chat_session::Chat;
use crate::screen::terminal;

/// The commands. Within a group, `/help` shows them in this order.
pub const COMMANDS: &[Command] = &[
    Command {
        names: &["editor"],
        argument: "",
        about: "write the message in your editor",
        group: Group::Message,
        completes: Completes::Nothing,
        run: Run::Now(messages::editor),
    },
    Command {
        names: &["image"],
        argument: "PATH",
        about: "attach a picture to the next message",
        group: Group::Message,
        completes: Completes::Paths,
        run: Run::Now(messages::image),
    },
    Command {
        names: &["init"],
        argument: "[update]",
        about: "let the model write AGENTS.md, the notes on this project for agents",
        group: Group::Message,
        completes: Completes::Words(&["update"]),
        run: Run::Now(messages::init),
    },
    Command {
        names: &["model"],
        argument: "[NAME] [LEVEL]",
        about: "pick another model, or how much it reasons",
        group: Group::Agent,
        completes: Completes::Models,
        run: Run::Later(models::model),
    },
    Command {
        names: &["agent"],
        argument: "[NAME]",
        about: "list the agents, or let another one answer",
        group: Group::Agent,
        completes: Completes::Agents,
        run: Run::Now(models::agent),
    },
    Command {
        names: &["mode"],
        argument: "[NAME]",
        about: "list the modes, or carry out what follows in another",
        group: Group::Agent,
        completes: Completes::Modes,
        run: Run::Now(mode::mode),
    },
    Command {
        names: &["plan"],
        argument: "[drop]",
        about: "show the plan and how far it has come, or give it up",
        group: Group::Agent,
        completes: Completes::Words(&["drop"]),
        run: Run::Now(mode::plan),
    },
    Command {
        names: &["prompt"],
        argument: "[NAME[@VERSION]]",
        about: "list the prompts, or use another as the system prompt",
        group: Group::Agent,
        completes: Completes::Prompts,
        run: Run::Now(prompts::prompt),
    },
    Command {
        names: &["tools"],
        argument: "",
        about: "list the tools that the model may call",
        group: Group::Agent,
        completes: Completes::Nothing,
        run: Run::Now(models::tools),
    },
    Command {
        names: &["approve"],
        argument: "[MODE]",
        about: "show what runs without a question, or change it",
        group: Group::Agent,
        completes: Completes::Approvals,
        run: Run::Now(settings::approve),
    },
    Command {
        names: &["set"],
        argument: "[KEY=VALUE]",
        about: "change the configuration of this chat, or show what was set in it",
        group: Group::Agent,
        completes: Completes::Keys,
        run: Run::Now(settings::set),
    },
    Command {
        names: &["context"],
        argument: "",
        about: "show what the next request holds",
        group: Group::Context,
        completes: Completes::Nothing,
        run: Run::Now(context::context),
    },
    Command {
        names: &["skills"],
        argument: "",
        about: "list the skills, and which are loaded",
        group: Group::Context,
        completes: Completes::Nothing,
        run: Run::Now(skills::skills),
    },
    Command {
        names: &["skill"],
        argument: "NAME [TASK]",
        about: "load a skill, for the task or the next message",
        group: Group::Context,
        completes: Completes::Skills,
        run: Run::Now(skills::skill),
    },
    Command {
        names: &["unload"],
        argument: "SKILL",
        about: "take a skill out of what is sent",
        group: Group::Context,
        completes: Completes::Skills,
        run: Run::Now(skills::unload),
    },
    Command {
        names: &["compact"],
        argument: "[--dry-run | FOCUS]",
        about: "make room in the context; FOCUS is kept above all",
        group: Group::Context,
        completes: Completes::Words(&["--dry-run"]),
        run: Run::Later(context::compact),
    },
    Command {
        names: &["uncompact"],
        argument: "",
        about: "send everything again as it was said",
        group: Group::Context,
        completes: Completes::Nothing,
        run: Run::Now(context::uncompact),
    },
    Command {
        names: &["pin"],
        argument: "[TEXT]",
        about: "keep the last exchange, or messages that contain TEXT, out of every compression",
        group: Group::Context,
        completes: Completes::Nothing,
        run: Run::Now(context::pin),
    },
    Command {
        names: &["recall"],
        argument: "ID | WORDS",
        about: "read what is no longer sent, by its id or by words in it",
        group: Group::Context,
        completes: Completes::Nothing,
        run: Run::Now(context::recall),
    },
    Command {
        names: &["last"],
        argument: "[N | #N | WORD]",
        about: "show the output of the last call, the Nth last or number N in full; or calls, answer, reasoning",
        group: Group::Conversation,
        completes: Completes::Words(&["calls", "answer", "reasoning"]),
        run: Run::Now(last),
    },
    Command {
        names: &["copy"],
        argument: "[N]",
        about: "copy the last answer, or its Nth code block",
        group: Group::Conversation,
        completes: Completes::Nothing,
        run: Run::Now(last::copy),
    },
    Command {
        names: &["cost"],
        argument: "",
        about: "show what this conversation has cost so far",
        group: Group::Conversation,
        completes: Completes::Nothing,
        run: Run::Now(conversation::cost),
    },
    Command {
        names: &["stats"],
        argument: "",
        about: "show its figures, tool by tool",
        group: Group::Conversation,
        completes: Completes::Nothing,
        run: Run::Now(conversation::stats),
    },
    Command {
        names: &["clear"],
        argument: "",
        about: "begin a new conversation",
        group: Group::Conversation,
        completes: Completes::Nothing,
        run: Run::Now(conversation::clear),
    },
    Command {
        names: &["help"],
        argument: "[COMMAND]",
        about: "list the commands, or explain one",
        group: Group::Chat,
        completes: Completes::Commands,
        run: Run::Now(help_of),
    },
    Command {
        names: &["raw"],
        argument: "",
        about: "show answers as the model writes them, or laid out again",
        group: Group::Chat,
        completes: Completes::Nothing,
        run: Run::Now(messages::raw),
    },
    Command {
        names: &["exit", "quit"],
        argument: "",
        about: "leave (Ctrl-D does too)",
        group: Group::Chat,
        completes: Completes::Nothing,
        run: Run::Now(conversation::exit),
    },
];

/// Finds a command by its name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.names.contains(&name))
}

fn help_of(chat: &mut Chat, name: &str) -> Answer {
    let width = terminal::width().unwrap_or(80);
    Ok(Outcome::Tell(help::help(name, COMMANDS, &chat.own, width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::text;
    use crate::config::OwnCommand;

    #[test]
    fn help_shows_every_command_once() {
        let help = help::help("", COMMANDS, &[], 80);
        for command in COMMANDS {
            for name in command.names {
                let words = help.split(|c: char| !c.is_alphanumeric() && c != '/');
                let shown = words.filter(|word| word.strip_prefix('/') == Some(name));
                assert_eq!(shown.count(), 1, "{name}");
            }
        }
        assert_eq!(help::help("/exit", COMMANDS, &[], 80), "/exit  leave (Ctrl-D does too); also /quit\n");
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
            let help = help::help("", COMMANDS, std::slice::from_ref(&own), width);
            let widest = help.lines().map(text::columns).max();
            assert!(widest.is_some_and(|widest| widest < width), "{width}:\n{help}");
        }
        insta::assert_snapshot!("help_80", help::help("", COMMANDS, std::slice::from_ref(&own), 80));
        insta::assert_snapshot!("help_40", help::help("", COMMANDS, std::slice::from_ref(&own), 40));
        assert_eq!(
            help::help("ship", COMMANDS, std::slice::from_ref(&own), 80),
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
