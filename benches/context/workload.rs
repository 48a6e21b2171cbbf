//! The work: 300 steps in eight turns, the files and outputs that they bring in, and 200 facts planted in them.
//!
//! Everything comes from one seed. The sizes of results are lognormal, as those of agents are: a median of about 300
//! tokens, one in twenty above 4,000, none above what a result may bring in. The same work can be had in small steps,
//! whose results have about one size.

use std::collections::BTreeMap;
use std::fmt::Write;

use fastrand::Rng;
use serde_json::{Value, json};

/// Steps of each turn, including the final answer.
const TURNS: [usize; 8] = [6, 70, 14, 95, 4, 55, 20, 36];
const FACTS_OF_A_KIND: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A path in a result.
    Path,
    /// An error line in the output of a command.
    Error,
    /// A figure in a result.
    Number,
    /// A decision of the model, in its own words.
    Decision,
    /// A demand of the person.
    Constraint,
}

/// A sentence that is said once and may matter later.
pub struct Fact {
    pub kind: Kind,
    pub text: String,
    /// The word by which one would search for it.
    pub key: String,
    /// The model has read it once so many steps were taken.
    pub known_after: usize,
    /// The step whose call brought it in, and which of its calls.
    pub source: Option<(usize, usize)>,
}

pub struct Call {
    pub name: &'static str,
    pub arguments: Value,
    /// The command's output, and whether it failed; for `run_command`.
    pub output: String,
    pub fails: bool,
}

/// The sizes of what comes in.
#[derive(Debug, Clone, Copy)]
pub enum Sizes {
    /// Those of agents.
    Lognormal,
    /// The results of a step have about so many tokens.
    Small(usize),
}

/// One reply of the model: without calls it ends the turn.
#[derive(Default)]
pub struct Step {
    pub words: String,
    pub calls: Vec<Call>,
    /// The fact that this step rests on.
    pub needs: Option<usize>,
}

pub struct Workload {
    /// The person's message, and the first step of each turn.
    pub turns: Vec<(String, usize)>,
    pub steps: Vec<Step>,
    pub facts: Vec<Fact>,
    /// The files of the workspace.
    pub files: BTreeMap<String, String>,
}

impl Workload {
    pub fn new(seed: u64, sizes: Sizes) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut work = Self { turns: Vec::new(), steps: Vec::new(), facts: Vec::new(), files: BTreeMap::new() };
        for (turn, length) in TURNS.into_iter().enumerate() {
            let first = work.steps.len();
            let said = work.said(&mut rng, turn, first, sizes);
            work.turns.push((said, first));
            for step in 0..length {
                let is_last = step + 1 == length;
                let words = prose(&mut rng, if is_last { 90 } else { 30 });
                work.steps.push(Step { words, ..Step::default() });
                if !is_last {
                    work.calls(&mut rng, sizes);
                }
            }
        }
        work.decide(&mut rng);
        for kind in [Kind::Path, Kind::Error, Kind::Number] {
            work.plant(&mut rng, kind);
        }
        work.need(&mut rng);
        work
    }

    /// Nothing but files that are read, one a step, in one turn.
    pub fn reads(seed: u64, steps: usize, tokens: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let turns = vec![("Read every file.".to_owned(), 0)];
        let mut work = Self { turns, steps: Vec::new(), facts: Vec::new(), files: BTreeMap::new() };
        for step in 0..steps {
            let path = format!("src/file_{step}.rs");
            work.files.insert(path.clone(), code(&mut rng, tokens));
            work.steps.push(Step { words: prose(&mut rng, 30), calls: vec![read(path)], needs: None });
        }
        work.steps.push(Step { words: prose(&mut rng, 90), ..Step::default() });
        work
    }

    /// The person's message in a turn, with a fair share of their demands.
    fn said(&mut self, rng: &mut Rng, turn: usize, known_after: usize, sizes: Sizes) -> String {
        let demands = (0..FACTS_OF_A_KIND / TURNS.len()).map(|at| {
            let number = turn * FACTS_OF_A_KIND / TURNS.len() + at;
            let key = format!("zone_{number:03}");
            let text = format!("Never touch {key}, and leave its {} at {}.", word(rng), rng.u32(100..9999));
            self.facts.push(Fact { kind: Kind::Constraint, text: text.clone(), key, known_after, source: None });
            format!("- {text}\n")
        });
        let demands: String = demands.collect();
        let asked = prose(rng, 60);
        let long = match sizes {
            Sizes::Lognormal => 2500,
            Sizes::Small(tokens) => tokens.min(2500),
        };
        match turn {
            // Two come with a long log, one before and one behind what is demanded.
            2 => format!("{asked}\n\n{demands}\n{}", log(rng, long, None)),
            5 => format!("{asked}\n\n{}\n{demands}", log(rng, long, None)),
            _ => format!("{asked}\n\n{demands}"),
        }
    }

    /// One to three calls for the last step.
    fn calls(&mut self, rng: &mut Rng, sizes: Sizes) {
        let step = self.steps.len() - 1;
        let count = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3][rng.usize(0..10)];
        for at in 0..count {
            let tokens = match sizes {
                Sizes::Lognormal => size(rng),
                Sizes::Small(tokens) => tokens * rng.usize(50..=150) / 100 / count,
            };
            let call = match rng.u32(0..100) {
                0..60 => {
                    let path = format!("src/{}/file_{step}_{at}.rs", word(rng));
                    self.files.insert(path.clone(), code(rng, tokens));
                    read(path)
                }
                60..92 => {
                    let fails = rng.u32(0..3) == 0;
                    let command = format!("cargo test -p {} -- --test-threads={}", word(rng), at + 1);
                    let output = log(rng, tokens, fails.then_some("error: test failed, to rerun pass `--lib`"));
                    Call { name: "run_command", arguments: json!({ "command": command }), output, fails }
                }
                _ => {
                    let content = code(rng, tokens.min(1500));
                    let arguments =
                        json!({ "path": format!("src/{}/new_{step}_{at}.rs", word(rng)), "content": content });
                    Call { name: "write_file", arguments, output: String::new(), fails: false }
                }
            };
            self.steps[step].calls.push(call);
        }
    }

    fn decide(&mut self, rng: &mut Rng) {
        for number in 0..FACTS_OF_A_KIND {
            let step = number * self.steps.len() / FACTS_OF_A_KIND + rng.usize(0..6);
            let key = format!("choice_{number:03}");
            let (what, why) = (word(rng), prose(rng, 14));
            let text = format!("Decision: {key} is {what} with a limit of {}, because {why}", rng.u32(10..9999));
            let _ = write!(self.steps[step].words, "\n{text}");
            self.facts.push(Fact { kind: Kind::Decision, text, key, known_after: step + 1, source: None });
        }
    }

    /// Plants facts of a kind in results, spread over the work.
    fn plant(&mut self, rng: &mut Rng, kind: Kind) {
        let wanted = if kind == Kind::Error { "run_command" } else { "read_file" };
        let places: Vec<(usize, usize)> = (0..self.steps.len())
            .flat_map(|step| (0..self.steps[step].calls.len()).map(move |at| (step, at)))
            .filter(|(step, at)| self.steps[*step].calls[*at].name == wanted)
            .collect();
        for number in 0..FACTS_OF_A_KIND {
            let (step, at) = places[(number * places.len() + rng.usize(0..places.len())) / (FACTS_OF_A_KIND + 1)];
            let (key, text) = match kind {
                Kind::Path => {
                    let key = format!("relay_{number:03}");
                    let text = format!("crates/{key}/src/{}/part_{}.rs", word(rng), rng.u32(100..999));
                    (key, text)
                }
                Kind::Error => {
                    let key = format!("slot_{number:03}");
                    let (code, by) = (rng.u32(100..999), rng.u32(100..9999));
                    let text =
                        format!("error[E0{code}]: the borrow of `{key}` outlives its {} by {by}", word(rng));
                    (key, text)
                }
                _ => {
                    let key = format!("gauge_{number:03}");
                    let text = format!("p99 of {key} is {} us", rng.u32(10_000..99_999));
                    (key, text)
                }
            };
            let call = &mut self.steps[step].calls[at];
            let body = match call.arguments["path"].as_str() {
                Some(path) => self.files.get_mut(path).expect("what is read was written"),
                None => &mut call.output,
            };
            insert_line(rng, body, &if kind == Kind::Error { text.clone() } else { format!("// see {text}") });
            self.facts.push(Fact { kind, text, key, known_after: step + 1, source: Some((step, at)) });
        }
    }

    /// One step in four rests on something that a result said at least ten steps ago.
    fn need(&mut self, rng: &mut Rng) {
        for step in (20..self.steps.len())
            .step_by(4)
            .filter(|step| !self.steps[*step].calls.is_empty())
            .collect::<Vec<_>>()
        {
            let old: Vec<usize> = (0..self.facts.len())
                .filter(|fact| self.facts[*fact].source.is_some() && self.facts[*fact].known_after + 10 <= step)
                .collect();
            self.steps[step].needs = rng.choice(old);
        }
    }
}

fn read(path: String) -> Call {
    Call { name: "read_file", arguments: json!({ "path": path }), output: String::new(), fails: false }
}

/// The number of tokens of a result.
fn size(rng: &mut Rng) -> usize {
    const MEDIAN: f64 = 300.0;
    const DEVIATION: f64 = 1.575;
    const MOST: f64 = 7000.0;
    let (radius, angle) = ((-2.0 * (1.0 - rng.f64()).ln()).sqrt(), std::f64::consts::TAU * rng.f64());
    let tokens = (MEDIAN * (DEVIATION * radius * angle.cos()).exp()).clamp(8.0, MOST);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 8 and 7,000")]
    let tokens = tokens as usize;
    tokens
}

const WORDS: [&str; 48] = [
    "reader", "buffer", "parser", "session", "window", "ledger", "budget", "spill", "stream", "frame", "index",
    "cursor", "worker", "queue", "socket", "router", "policy", "schema", "merge", "layout", "signal", "replay",
    "cache", "prefix", "token", "batch", "retry", "header", "export", "import", "render", "column", "quota",
    "branch", "commit", "record", "search", "digest", "notice", "anchor", "bridge", "folder", "module", "vector",
    "sample", "output", "status", "handle",
];

fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.usize(0..WORDS.len())]
}

fn prose(rng: &mut Rng, words: usize) -> String {
    let joints = ["of the", "and its", "before the", "with a", "does not hold the", "is kept by the"];
    let mut text = format!("The {}", word(rng));
    for _ in 0..words / 4 {
        let _ = write!(text, " {} {}", joints[rng.usize(0..joints.len())], word(rng));
    }
    text + "."
}

/// Bytes for a token in what is written here.
const BYTES_PER_TOKEN: usize = 4;

pub fn code(rng: &mut Rng, tokens: usize) -> String {
    let mut text = String::new();
    while text.len() < tokens * BYTES_PER_TOKEN {
        let (a, b, c) = (word(rng), word(rng), word(rng));
        let number = rng.u32(0..5000);
        let _ = match rng.u32(0..6) {
            0 => writeln!(text, "    let {a} = self.{b}.{c}({number})?;"),
            1 => writeln!(text, "    if {a}.len() > {number} {{ return Err({b}(\"{c} is too long\")); }}"),
            2 => writeln!(text, "    /// How the {a} of a {b} becomes its {c}."),
            3 => writeln!(text, "pub fn {a}_{b}({c}: &mut {c}::State) -> Option<usize> {{"),
            4 => writeln!(text, "        {a}.push({b}_{c});"),
            _ => writeln!(text, "}}"),
        };
    }
    text
}

fn log(rng: &mut Rng, tokens: usize, end: Option<&str>) -> String {
    let mut text = String::new();
    while text.len() < tokens * BYTES_PER_TOKEN {
        let (a, b) = (word(rng), word(rng));
        let number = rng.u32(0..90_000);
        let _ = match rng.u32(0..50) {
            0 => writeln!(text, "warning: unused variable `{a}_{b}` at src/{a}/{b}.rs:{number}"),
            1 => writeln!(text, "note: the {a} may fail when the {b} is empty"),
            2..20 => writeln!(text, "   Compiling {a}-{b} v0.{}.{}", number % 90, number % 7),
            _ => writeln!(text, "test {a}::tests::{b}_{number} ... ok"),
        };
    }
    text + end.unwrap_or("test result: ok.") + "\n"
}

/// Puts a line somewhere into a text.
fn insert_line(rng: &mut Rng, text: &mut String, line: &str) {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    text.insert_str(starts[rng.usize(0..starts.len())], &format!("{line}\n"));
}
