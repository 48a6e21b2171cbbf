//! The history of the chat: kept for each workspace, searched, and shared by chats that run at once.

use std::sync::Arc;

use crate::pty::Terminal;
use crate::repl::start;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

fn again(place: &Arc<Place>, server: &Server) -> Terminal {
    start(&Run::at(place).server(server))
}

fn say(terminal: &mut Terminal, server: &Server, message: &str) {
    let before = server.requests().len();
    terminal.line(message);
    terminal
        .wait_until("the answer", |screen| server.requests().len() > before && screen.trim_end().ends_with("\n>"));
}

#[test]
fn a_message_is_found_again_in_the_next_chat() {
    let server = Server::always(Reply::text("Noted."));
    let place = Place::new();
    let mut first = again(&place, &server);
    for message in ["the heron stands", "the egret flies", "something else"] {
        say(&mut first, &server, message);
    }
    first.keys("\x04");
    assert_eq!(first.exit_code(), 0);
    let mut second = again(&place, &server);
    second.keys("\x1b[A\x1b[A");
    second.wait_for("> the egret flies");
    second.keys("\x03");
    // Ctrl-R searches backwards; once more takes the one before.
    second.keys("\x12the");
    second.wait_for("(reverse-i-search)`the': the egret flies");
    second.keys("\x12");
    second.wait_for("(reverse-i-search)`the': the heron stands");
    // Ctrl-S searches on.
    second.keys("\x13");
    second.wait_for("(i-search)`the': the egret flies");
    second.keys("\x12");
    second.wait_for("(reverse-i-search)`the': the heron stands");
    second.keys("\r");
    second.wait_for("Noted.");
    assert_eq!(
        server.requests().last().map(|request| request.user().to_owned()).as_deref(),
        Some("the heron stands")
    );
}

#[test]
fn chats_at_once_see_what_the_others_sent() {
    let server = Server::always(Reply::text("Noted."));
    let place = Place::new();
    let (mut one, mut two) = (again(&place, &server), again(&place, &server));
    say(&mut one, &server, "from the first");
    say(&mut two, &server, "from the second");
    say(&mut one, &server, "again from the first");
    // A new line knows what was sent meanwhile.
    two.keys("\x03");
    two.wait_for("Ctrl-D");
    two.keys("\x1b[A");
    two.wait_for("> again from the first");
    two.keys("\x1b[A");
    two.wait_until("its own", |screen| screen.matches("> from the second").count() == 2);
    two.keys("\x1b[A");
    two.wait_for("> from the first");
}

#[test]
fn another_workspace_has_another_history() {
    let server = Server::always(Reply::text("Noted."));
    let place = Place::new();
    let mut first = again(&place, &server);
    say(&mut first, &server, "the heron stands");
    std::fs::create_dir(place.workspace().join("other")).expect("made");
    let mut second = start(&Run::at(&place).args(["-C", "other"]).server(&server));
    second.keys("\x1b[Ax");
    second.wait_for("> x");
    let histories: Vec<_> =
        place.kept().into_iter().filter(|(_, text)| text.contains("the heron stands")).collect();
    let kept: Vec<_> = histories
        .iter()
        .filter(|(path, _)| path.components().any(|part| part.as_os_str() == "histories"))
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}
