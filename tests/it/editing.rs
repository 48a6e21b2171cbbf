//! Editing a message in the chat: pastes, mentions, the person's own editor, the keys of emacs and vi, every script.

use crate::pty::Terminal;
use crate::repl::{chat, said, start};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// Waits until this many requests are answered and the prompt is back, and returns what was said last.
#[track_caller]
fn sent(terminal: &Terminal, server: &Server, count: usize) -> String {
    terminal.wait_until("the answer", |screen| {
        server.requests().len() >= count && screen.contains("Noted.") && screen.trim_end().ends_with("\n>")
    });
    said(server).last().cloned().expect("something was said")
}

#[test]
fn a_paste_without_marks_is_one_message() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    terminal.keys("line one\rline two\n\r\tline four\r");
    assert_eq!(sent(&terminal, &server, 1), "line one\nline two\n\n\tline four");
    // What a person types behind it belongs to it too.
    terminal.keys("pasted\rtext");
    terminal.wait_for("text");
    terminal.keys(" and typed\r");
    assert_eq!(sent(&terminal, &server, 2), "pasted\ntext and typed");
}

#[test]
fn a_long_paste_is_shown_by_its_size_and_sent_whole() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    let lines = (1..=84).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    terminal.keys("see ");
    terminal.paste(&lines.replace('\n', "\r"));
    terminal.keys(", please\r");
    assert_eq!(sent(&terminal, &server, 1), format!("see {lines}, please"));
    assert!(terminal.screen().contains("> see [pasted 84 lines], please"), "{}", terminal.screen());
    // Deleted as one thing.
    terminal.paste(&lines);
    terminal.wait_until("the paste", |screen| screen.matches("[pasted 84 lines]").count() == 2);
    terminal.keys("\x7fwithout\r");
    assert_eq!(sent(&terminal, &server, 2), "without");
    // Words that were changed stand for nothing.
    terminal.paste(&lines);
    terminal.keys("\x1b[D\x7f");
    terminal.wait_for("[pasted 84 line]");
    terminal.keys("\r");
    assert_eq!(sent(&terminal, &server, 3), "[pasted 84 line]");
}

#[test]
fn a_paste_that_looks_like_a_command_is_text() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    for (count, text) in [(1, "/help"), (2, "!touch ran"), (3, "/usr/bin\nis a directory"), (4, "!!touch ran")] {
        terminal.paste(text);
        terminal.keys("\r");
        assert_eq!(sent(&terminal, &server, count), text);
    }
    assert!(!terminal.place.exists("ran"));
}

#[test]
fn a_few_letters_after_an_at_find_a_file_and_attach_it() {
    let server = Server::always(Reply::text("Noted."));
    let run = Run::new()
        .server(&server)
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".gitignore", "built/\n")
        .file("built/parser.rs", "generated")
        .file("src/deep/parser.rs", "the heron\n".repeat(40))
        .file("src/deep/parsed.rs", "x")
        .file("docs/other.md", "x");
    let mut terminal = start(&run);
    terminal.keys("look at @dparser.\t");
    terminal.wait_for("> look at @src/deep/parser.rs");
    terminal.keys(" now\r");
    let message = sent(&terminal, &server, 1);
    assert!(
        message.starts_with("look at @src/deep/parser.rs now\n\n<attachment name=\"src/deep/parser.rs\""),
        "{message}"
    );
    assert!(message.contains("the heron"), "{message}");
    // Several: the first Tab lists them with their sizes, further ones take one after another.
    terminal.keys("@parse\t");
    terminal.wait_for("src/deep/parser.rs · 100 tokens");
    assert!(!terminal.screen().contains("built"), "{}", terminal.screen());
    terminal.keys("\t");
    terminal.wait_until("one of them", |screen| screen.contains("> @src/deep/parse"));
}

#[test]
fn the_persons_editor_goes_on_with_the_line() {
    let server = Server::always(Reply::text("Noted."));
    let run = Run::new()
        .server(&server)
        .file("edit.sh", "printf ' and more\\n' >> \"$1\"\n")
        .env("EDITOR", "sh edit.sh");
    let mut terminal = start(&run);
    terminal.keys("begun\x18\x05");
    terminal.wait_for("> begun and more");
    terminal.keys("\x1be");
    terminal.wait_until("the second edit", |screen| screen.contains("> begun and more and more"));
    assert!(server.requests().is_empty(), "nothing is sent before Enter");
    terminal.keys("\r");
    assert_eq!(sent(&terminal, &server, 1), "begun and more and more");
}

#[test]
fn esc_esc_takes_the_last_message_back_into_the_line() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    terminal.line("the first wording");
    assert_eq!(sent(&terminal, &server, 1), "the first wording");
    terminal.line("/stats");
    terminal.wait_until("the table and the prompt", |screen| {
        screen.contains("No tool was called.") && screen.trim_end().ends_with("\n>")
    });
    terminal.keys("\x1b\x1b");
    terminal.wait_until("the message", |screen| screen.matches("> the first wording").count() == 2);
    terminal.keys(", changed\r");
    assert_eq!(sent(&terminal, &server, 2), "the first wording, changed");
}

#[test]
fn the_keys_of_vi_are_those_of_vi() {
    let server = Server::always(Reply::text("Noted."));
    let run = Run::new().args(["chat", "--set", "ui.edit_mode=vi"]).server(&server);
    let mut terminal = start(&run);
    terminal.keys("one two three");
    terminal.wait_for("one two three");
    // To the command mode, a word back, delete it, and append.
    terminal.keys("\x1bbD");
    terminal.wait_until("a word less", |screen| screen.contains("one two") && !screen.contains("three"));
    terminal.keys("Afour\r");
    assert_eq!(sent(&terminal, &server, 1), "one two four");
    terminal.paste("12 lines\nof 34");
    terminal.keys("\r");
    assert_eq!(sent(&terminal, &server, 2), "12 lines\nof 34");
}

#[test]
fn a_hint_from_the_history_is_taken_with_end_or_right() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    terminal.line("remember the heron");
    assert_eq!(sent(&terminal, &server, 1), "remember the heron");
    for (count, key) in [(2, "\x1b[F"), (3, "\x1b[C")] {
        terminal.keys("rem");
        terminal.wait_until("the hint", |screen| screen.matches("> remember the heron").count() == count);
        terminal.keys(key);
        terminal.keys("\r");
        assert_eq!(sent(&terminal, &server, count), "remember the heron");
    }
    // Not taken, it is neither sent nor left on the screen.
    terminal.keys("rem");
    terminal.wait_until("the hint", |screen| screen.matches("> remember the heron").count() == 4);
    terminal.keys("\r");
    assert_eq!(sent(&terminal, &server, 4), "rem");
    assert!(terminal.screen().contains("> rem\n"), "{}", terminal.screen());
}

#[test]
fn every_script_is_edited_across_the_rows_of_a_narrow_screen() {
    for text in [
        "你好世界，这是一个很长的句子，它要跨越好几行才能结束，因为屏幕很窄很窄很窄很窄",
        "emoji 🎉🎉🎉🎉🎉🎉🎉🎉 and 👋🏽 and 👨‍👩‍👧‍👦 and some more words to wrap the line",
        "cafe\u{301} re\u{301}sume\u{301} and more words with marks: n\u{303} o\u{308} u\u{308} a\u{30a}",
        "مرحبا بالعالم هذا نص طويل بما يكفي ليمتد على أكثر من سطر واحد في شاشة ضيقة",
    ] {
        let server = Server::always(Reply::text("Noted."));
        let mut terminal = Terminal::sized(&Run::new().server(&server), 40, 20);
        terminal.wait_for("> ");
        terminal.keys(text);
        // Home, and in front of it; the end, and behind it; back over two characters that take several bytes.
        terminal.keys("\x01<\x05>xy\x1b[D\x1b[D\x7f\x1b[C\x1b[C\r");
        assert_eq!(sent(&terminal, &server, 1), format!("<{text}xy"));
        let screen: String = terminal.screen().lines().collect();
        assert!(screen.contains("Noted."), "{screen}");
    }
}

#[test]
fn a_message_may_end_in_the_middle_of_its_rows() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = Terminal::sized(&Run::new().server(&server), 40, 20);
    terminal.wait_for("> ");
    let text = "a line of words that goes on for three rows of a screen that is only forty columns wide, no more";
    terminal.keys(text);
    terminal.wait_for("no more");
    terminal.keys("\x01\r");
    assert_eq!(sent(&terminal, &server, 1), text);
    // The rows below the cursor are still there, with the answer under them.
    let screen = terminal.screen();
    let (above, _) = screen.split_once("Noted.").expect("the answer");
    assert!(above.contains("no more"), "{screen}");
}
