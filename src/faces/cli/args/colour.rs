//! `--color`, also for help and usage errors, which are printed although the options were not parsed.

use std::ffi::OsString;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::screen::ink::Colour;

impl ValueEnum for Colour {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Always, Self::Never]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }))
    }
}

/// Finds the value of `--color` in arguments that are wrong or ask for help.
pub fn find_colour(args: &[OsString]) -> Colour {
    let words = args.iter().map(|arg| arg.to_str().unwrap_or_default()).take_while(|word| *word != "--");
    let words: Vec<&str> = words.collect();
    let apart = words.iter().zip(words.iter().skip(1)).filter(|(name, _)| **name == "--color");
    let joined = words.iter().filter_map(|word| word.strip_prefix("--color="));
    let value = joined.chain(apart.map(|(_, value)| *value)).last();
    value.and_then(|value| Colour::from_str(value, false).ok()).unwrap_or_default()
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
