//! Skims the rest of a line that is not understood: whatever could be a command or a file in it counts as one.

use super::super::programs::has_row;
use super::reader::ShellReader;
use super::{Arg, Redirect, Simple};

impl ShellReader<'_> {
    /// Adds what the text after the last command that was read could run and open, whatever its quotes and brackets mean.
    pub(super) fn skim(&mut self) {
        let before = self.text.get(..self.at).unwrap_or_default();
        let from = before.rfind(|c: char| c.is_ascii_whitespace() || ends_command(c)).map_or(0, |at| at + 1);
        let rest = self.text.get(from..).unwrap_or_default().replace("${HOME}", "$HOME");
        for part in rest.split(ends_command) {
            self.skim_command(&part.replace('>', " > ").replace('<', " < "));
        }
    }

    fn skim_command(&mut self, text: &str) {
        let (mut argv, mut opened) = (Vec::new(), None);
        for word in text.split_whitespace() {
            let word: String = word.chars().filter(|c| !['\'', '"', '\\'].contains(c)).collect();
            let after_home = ["~", "$HOME"].into_iter().find_map(|home| word.split_once(home));
            self.script.in_home.extend(after_home.map(|(_, path)| path.to_owned()));
            match word.as_str() {
                ">" | "<" => opened = Some(word == ">"),
                _ if argv.is_empty() && has_row("begins", &word) => {}
                _ => match opened.take() {
                    Some(writes) => {
                        let target = match after_home {
                            Some(("", path)) => Arg::InHome(path.to_owned()),
                            _ => Arg::Literal(word),
                        };
                        self.script.files.push(Redirect { target, writes });
                    }
                    None => argv.push(Arg::Literal(word)),
                },
            }
        }
        if !argv.is_empty() {
            self.script.commands.push(Simple::new(argv, self.depth));
        }
    }
}

fn ends_command(c: char) -> bool {
    matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '{' | '}' | '\n')
}
