//! Draws code blocks: their lines unchanged, in the colours of their language or of a diff.

use super::indent::expand_tabs;
use super::inline::show_text;
use super::starts::Fence;
use crate::screen::highlight::Highlighter;
use crate::screen::ink::{Ink, Inks, Line};

/// The colours of a block.
#[derive(Debug, Clone)]
enum Colours {
    None,
    Diff,
    Language(Box<Highlighter>),
}

/// A code block that is being drawn.
#[derive(Debug, Clone)]
pub struct Code {
    colours: Colours,
    fence: String,
}

impl Code {
    /// Begins a block; `info` is the text after its fence.
    pub fn new(fence: Option<Fence>, info: &str) -> Self {
        let language = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
        let colours = match language {
            "" => Colours::None,
            "diff" | "patch" => Colours::Diff,
            language => Highlighter::new(language).map_or(Colours::None, |h| Colours::Language(Box::new(h))),
        };
        let fence = fence.map_or("```".to_owned(), |fence| fence.mark.to_string().repeat(fence.length));
        Self { colours, fence }
    }

    /// The line above the code.
    pub fn top(&self, info: &str) -> Line {
        Line::new().add(Ink::Dim, &show_text(&format!("{}{info}", self.fence)))
    }

    /// The line beneath it.
    pub fn bottom(&self) -> Line {
        Line::new().add(Ink::Dim, &self.fence)
    }

    /// Draws a line of the code.
    pub fn line(&mut self, line: &str) -> Line {
        let line = expand_tabs(line, line.len());
        match &mut self.colours {
            Colours::None => Line::new().add(Inks::PLAIN, &show_text(&line)),
            Colours::Diff => Line::new().add(diff_inks(&line), &show_text(&line)),
            Colours::Language(highlighter) => {
                let mut drawn = Line::new();
                for (inks, part) in highlighter.line(&line) {
                    drawn.push(inks, &show_text(part));
                }
                drawn
            }
        }
    }
}

/// The inks of a line of a diff, by how it begins.
fn diff_inks(line: &str) -> Inks {
    let starts: [(&[&str], Inks); 4] = [
        (&["+++", "---", "diff ", "index "], Ink::Bold.into()),
        (&["@@"], Ink::Cyan.into()),
        (&["+"], Ink::Green.into()),
        (&["-"], Ink::Red.into()),
    ];
    let found = starts.iter().find(|(starts, _)| starts.iter().any(|start| line.starts_with(start)));
    found.map_or(Inks::PLAIN, |(_, inks)| *inks)
}
