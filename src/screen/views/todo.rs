//! The model's todo list: a state that follows the events, and its drawing as a checklist.

use std::collections::HashMap;

use serde::Deserialize;

use super::fit::{draw_words, fit_checklist};
use crate::base::text;
use crate::conversation::event::EventKind;
use crate::conversation::message::CallStatus;
use crate::screen::ink::{Ink, Inks, Line};

/// The tool that replaces the list.
pub(in crate::screen) const TOOL: &str = "todo";

/// The current list; empty if there is none.
#[derive(Debug, Default)]
pub struct TodoList {
    items: Vec<ShownTodo>,
    /// The lists of running calls, by call id. A list takes effect once its call has succeeded.
    called: HashMap<String, Vec<ShownTodo>>,
}

#[derive(Debug, Deserialize)]
struct TodoInput {
    items: Vec<ShownTodo>,
}

#[derive(Debug, Deserialize)]
struct ShownTodo {
    text: String,
    status: ShownTodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShownTodoStatus {
    Pending,
    Doing,
    Done,
}

impl TodoList {
    /// Updates the list from an event of the run itself. Returns true if it changed.
    pub fn follow(&mut self, kind: &EventKind) -> bool {
        match kind {
            EventKind::ToolStarted { call_id, name, arguments, .. } if name == TOOL => {
                if let Ok(TodoInput { items }) = TodoInput::deserialize(arguments) {
                    self.called.insert(call_id.clone(), items);
                }
                false
            }
            EventKind::ToolFinished { call_id, status, .. } => match self.called.remove(call_id) {
                Some(items) if *status == CallStatus::Ok => {
                    self.items = items;
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// True if every item is done, or there are none.
    pub fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.status == ShownTodoStatus::Done)
    }

    /// Draws the list in at most `rows` lines: `todo 1 of 3 done`, then one item per line. If they do not fit, done
    /// items are dropped first, since the title counts them; items left out at the end are counted.
    pub fn lines(&self, room: usize, rows: usize) -> Vec<Line> {
        let is_done = |item: &ShownTodo| item.status == ShownTodoStatus::Done;
        let done = self.items.iter().filter(|item| is_done(item)).count();
        let title = draw_words(Ink::Dim, &format!("todo {done} of {} done", self.items.len()), room);
        fit_checklist(title, &self.items, is_done, |item| draw_item(item, room), room, rows)
    }
}

fn draw_item(item: &ShownTodo, room: usize) -> Line {
    let (mark, mark_ink, inks) = match item.status {
        ShownTodoStatus::Pending => ("☐", Ink::Dim, Inks::PLAIN),
        ShownTodoStatus::Doing => ("▸", Ink::Cyan, Ink::Bold.into()),
        ShownTodoStatus::Done => ("✓", Ink::Green, Ink::Dim.into()),
    };
    let line = Line::new().add(Inks::PLAIN, "  ").add(mark_ink, mark).add(Inks::PLAIN, " ");
    line.add(inks, &text::one_line(&item.text, room)).cut(room)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::event::CallTelemetry;

    fn started(call_id: &str, name: &str, items: &[(&str, &str)]) -> EventKind {
        let items: Vec<_> = items.iter().map(|(text, status)| json!({"text": text, "status": status})).collect();
        let (call_id, name, subject) = (call_id.to_owned(), name.to_owned(), String::new());
        EventKind::ToolStarted { call_id, name, arguments: json!({ "items": items }), subject }
    }

    fn finished(call_id: &str, status: CallStatus) -> EventKind {
        EventKind::ToolFinished {
            call_id: call_id.to_owned(),
            name: TOOL.to_owned(),
            status,
            summary: String::new(),
            telemetry: CallTelemetry::default(),
            truncated: false,
            spill_id: None,
        }
    }

    fn list(items: &[(&str, &str)]) -> TodoList {
        let mut list = TodoList::default();
        assert!(!list.follow(&started("c1", TOOL, items)));
        assert!(list.follow(&finished("c1", CallStatus::Ok)));
        list
    }

    fn shown(list: &TodoList, room: usize, rows: usize) -> String {
        list.lines(room, rows).iter().map(Line::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_list_counts_once_its_call_has_succeeded() {
        let mut list = list(&[("look", "done"), ("change\nit", "doing"), ("check", "pending")]);
        let all = "todo 1 of 3 done\n  ✓ look\n  ▸ change it\n  ☐ check";
        assert_eq!(shown(&list, 40, 9), all);
        for (call, name, status) in
            [("c2", TOOL, CallStatus::Error), ("c3", TOOL, CallStatus::Denied), ("c4", "other", CallStatus::Ok)]
        {
            list.follow(&started(call, name, &[("no", "done")]));
            assert!(!list.follow(&finished(call, status)));
        }
        assert_eq!(shown(&list, 40, 9), all);
        assert!(!list.is_done());
        list.follow(&started("c5", TOOL, &[("look", "done")]));
        assert!(list.follow(&finished("c5", CallStatus::Ok)) && list.is_done());
        list.follow(&started("c6", TOOL, &[]));
        assert!(list.follow(&finished("c6", CallStatus::Ok)));
        assert_eq!(shown(&list, 40, 9), "");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_item_in_hand_stays() {
        let list = list(&[("a", "done"), ("b", "done"), ("c", "done"), ("d", "doing"), ("e", "pending")]);
        for (rows, expected) in [
            (6, "todo 3 of 5 done\n  ✓ a\n  ✓ b\n  ✓ c\n  ▸ d\n  ☐ e"),
            (5, "todo 3 of 5 done\n  ✓ b\n  ✓ c\n  ▸ d\n  ☐ e"),
            (3, "todo 3 of 5 done\n  ▸ d\n  ☐ e"),
            (2, "todo 3 of 5 done\n  ▸ d"),
            (1, "todo 3 of 5 done"),
            (0, ""),
        ] {
            assert_eq!(shown(&list, 40, rows), expected, "{rows}");
        }
    }

    #[test]
    fn what_is_left_out_at_the_end_is_counted() {
        let list = list(&[("a", "doing"), ("b", "pending"), ("c", "pending"), ("d", "pending")]);
        assert_eq!(shown(&list, 40, 4), "todo 0 of 4 done\n  ▸ a\n  ☐ b\n  … 2 more");
    }

    #[test]
    fn nothing_is_wider_or_higher_than_its_room() {
        let list = list(&[
            ("日本語日本語日本語", "done"),
            ("a long item\u{1b} of many words", "doing"),
            ("x", "pending"),
        ]);
        for room in 1..40 {
            for rows in 0..6 {
                let lines = list.lines(room, rows);
                assert!(lines.len() <= rows, "{lines:?}");
                assert!(lines.iter().all(|line| line.columns() <= room), "{lines:?} in {room}");
            }
        }
    }
}
