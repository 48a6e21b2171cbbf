//! Command lines made to be hard to read: quotes, substitutions, groups, words of the grammar and here-documents in any
//! order, as a hostile model could send them.

use agent::facade::safety::policy::read_line;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};

/// What hostile lines are made of.
const PIECES: [&str; 56] = [
    "a", "b ", " ", "\n", ";", "|", "&", "&&", "||", "<", ">", "<<", "<<-", "<<<", "(", ")", "{ ", "}", "$", "$(",
    "${", "$((", "))", "`", "\"", "'", "\\", "*", "?", "~", "!", "#", "=", "[", "]", "[[ ", " ]]", "0", "9",
    "if ", "then ", "fi", "for ", " in ", "do ", "done", "case ", "esac", "while ", "sh -c ", "find -exec ",
    "xargs ", "env ", "eval ", "E\n", "strace ",
];

/// Ten times the length should cost ten times the time.
#[divan::bench(args = [150, 1_500, 15_000])]
fn lines_hostile(bencher: Bencher<'_, '_>, length: usize) {
    const LINES: usize = 100;
    let mut random = fastrand::Rng::with_seed(1);
    let lines: Vec<String> = (0..LINES).map(|_| line(&mut random, length)).collect();
    let bytes = lines.iter().map(String::len).sum::<usize>();
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::new(bytes)).bench(|| {
        for line in &lines {
            black_box(read_line(line));
        }
    });
}

/// One kind of nesting, as deep as the line is long.
#[divan::bench(args = ["(", "$(", "\"$(", "`", "{ ", "if ", "a <<E; ", "env ", "strace ", "sh -c \"", "a $(b <<"])]
fn lines_deep(bencher: Bencher<'_, '_>, piece: &str) {
    let line = piece.repeat(15_000 / piece.len());
    bencher.counter(BytesCount::of_str(&line)).bench(|| read_line(black_box(&line)));
}

fn line(random: &mut fastrand::Rng, length: usize) -> String {
    let mut line = String::new();
    while line.len() < length {
        line += PIECES[random.usize(..PIECES.len())];
    }
    line
}
