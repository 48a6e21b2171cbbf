//! What the motions of vi cover, and what its commands do to the row that the cursor is in.

use rustyline::{At, CharSearch, Movement, RepeatCount};

use super::field::TextField;

/// The most characters that a count can take.
pub(super) const MOST_TIMES: RepeatCount = 1000;

pub(super) fn is_search(letter: char) -> bool {
    matches!(letter, 'f' | 'F' | 't' | 'T')
}

pub(super) fn find_character(kind: char, c: char) -> CharSearch {
    match kind {
        'F' => CharSearch::Backward(c),
        't' => CharSearch::ForwardBefore(c),
        'T' => CharSearch::BackwardAfter(c),
        _ => CharSearch::Forward(c),
    }
}

pub(super) fn turn_round(search: CharSearch) -> CharSearch {
    match search {
        CharSearch::Forward(c) => CharSearch::Backward(c),
        CharSearch::Backward(c) => CharSearch::Forward(c),
        CharSearch::ForwardBefore(c) => CharSearch::BackwardAfter(c),
        CharSearch::BackwardAfter(c) => CharSearch::ForwardBefore(c),
    }
}

/// What an operator takes: as vi has it, the end of a word with it, and a changed word without the blanks behind it.
pub(super) fn with_operator(motion: Movement, operator: char) -> Movement {
    match motion {
        Movement::ForwardWord(times, at, word) if at == At::BeforeEnd || operator == 'c' => {
            Movement::ForwardWord(times, At::AfterEnd, word)
        }
        motion => motion,
    }
}

pub(super) fn is_forward(motion: &Movement) -> bool {
    matches!(
        motion,
        Movement::ForwardWord(..)
            | Movement::ForwardChar(_)
            | Movement::EndOfLine
            | Movement::ViCharSearch(_, CharSearch::Forward(_) | CharSearch::ForwardBefore(_))
    )
}

/// Moves within the row.
pub(super) fn go(field: &mut TextField, motion: &Movement) {
    match *motion {
        Movement::BackwardChar(times) => field.go(&Movement::BackwardChar(times.min(count_left(field)))),
        Movement::ForwardChar(times) => field.go(&Movement::ForwardChar(times.min(count_right(field)))),
        Movement::ViFirstPrint => {
            let start = row_start(field);
            let row = &field.text()[start..row_end(field)];
            field.set_cursor(start + row.len() - row.trim_start().len());
        }
        _ => field.go(motion),
    }
}

/// Cuts what a motion covers.
pub(super) fn cut(field: &mut TextField, motion: &Movement) {
    if *motion == Movement::ViFirstPrint {
        let to = field.cursor();
        go(field, motion);
        let from = field.cursor();
        field.set_cursor(from.max(to));
        return field.replace_before(from.min(to), "");
    }
    field.cut(motion);
}

pub(super) fn cut_to_row_end(field: &mut TextField) {
    if count_right(field) > 0 {
        field.cut(&Movement::EndOfLine);
    }
}

/// Turns the case of the character at the cursor, and moves on.
pub(super) fn change_case(field: &mut TextField) {
    if count_right(field) == 0 {
        return;
    }
    let Some(c) = field.split().1.chars().next() else { return };
    let turned: String = if c.is_lowercase() { c.to_uppercase().collect() } else { c.to_lowercase().collect() };
    let at = field.cursor();
    field.set_cursor(at + c.len_utf8());
    field.replace_before(at, &turned);
}

/// In the command mode the cursor stands on a character.
pub(super) fn rest_cursor(field: &mut TextField) {
    if count_right(field) == 0 && count_left(field) > 0 {
        field.go(&Movement::BackwardChar(1));
    }
}

/// The characters of the row before the cursor, at most as many as a count can take.
pub(super) fn count_left(field: &TextField) -> RepeatCount {
    count_characters(&field.text()[row_start(field)..field.cursor()])
}

/// The characters of the row from the cursor on.
pub(super) fn count_right(field: &TextField) -> RepeatCount {
    count_characters(&field.text()[field.cursor()..row_end(field)])
}

fn count_characters(row: &str) -> RepeatCount {
    let mut field = TextField::from_text(row);
    let mut count = 0;
    while field.cursor() > 0 && count < MOST_TIMES {
        field.go(&Movement::BackwardChar(1));
        count += 1;
    }
    count
}

pub(super) fn row_start(field: &TextField) -> usize {
    field.split().0.rfind('\n').map_or(0, |feed| feed + 1)
}

pub(super) fn row_end(field: &TextField) -> usize {
    let (before, after) = field.split();
    before.len() + after.find('\n').unwrap_or(after.len())
}
