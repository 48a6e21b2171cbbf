//! `--color`, also for help and usage errors, which are printed although the options were not parsed.

use std::ffi::OsString;

use clap::ValueEnum;

use crate::screen::ink::Colour;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

impl From<ColorChoice> for Colour {
    fn from(choice: ColorChoice) -> Self {
        match choice {
            ColorChoice::Auto => Self::Auto,
            ColorChoice::Always => Self::Always,
            ColorChoice::Never => Self::Never,
        }
    }
}

/// Finds the value of `--color` in arguments that are wrong or ask for help.
pub fn find_colour(args: &[OsString]) -> Colour {
    let words = args.iter().map(|arg| arg.to_str().unwrap_or_default()).take_while(|word| *word != "--");
    let words: Vec<&str> = words.collect();
    let apart = words.iter().zip(words.iter().skip(1)).filter(|(name, _)| **name == "--color");
    let joined = words.iter().filter_map(|word| word.strip_prefix("--color="));
    let value = joined.chain(apart.map(|(_, value)| *value)).last();
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).map_or(Colour::Auto, Colour::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_for_colours_is_read_although_the_rest_is_wrong() {
        for (line, colour) in [
            ("agent --nonsense", Colour::Auto),
            ("agent --nonsense --color never", Colour::Never),
            ("agent --color=always --help", Colour::Always),
            ("agent --color=sometimes", Colour::Auto),
            ("agent run -- --color=never", Colour::Auto),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(find_colour(&args), colour, "{line}");
        }
    }
}
