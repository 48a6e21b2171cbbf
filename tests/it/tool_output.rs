//! docs/tool-output.md shows one result in every format and encoding, with its tokens: the program prints it here, so it
//! is true. `BLESS=1` writes it.

use std::fmt::Write;

use agent::facade::base::tokens;

use crate::run::Run;

const FORMATS: [(&str, &str); 4] = [
    ("concise", "Only the observation: what matters for the next decision of the model. The default."),
    ("standard", "Status and summary as well."),
    ("detailed", "Everything, including values that change with each call: for debugging."),
    ("raw", "The data as the tool returned it, unprocessed."),
];

/// With the languages of their blocks.
const ENCODINGS: [(&str, &str); 5] =
    [("text", ""), ("json", "json output"), ("yaml", "yaml output"), ("xml", "xml output"), ("compact", "")];

/// The file that is searched.
const FILE: &str = "use std::time::Duration;

pub struct Client {
    retries: u32,
    timeout: Duration,
}

impl Client {
    pub fn builder(&self) -> Builder {
        Builder::new().timeout(self.timeout)
    }
}
";

/// What the program prints for the call of the page. The time that the call took is a fixed one.
fn shown(format: &str, encoding: &str) -> String {
    let run = Run::new().file("src/net.rs", FILE).args(["tool", "call", "grep", r#"{"pattern": "timeout"}"#]);
    let text = run.args(["--format", format, "--encoding", encoding]).run().success().stdout;
    let Some((before, after)) = text.split_once("duration_ms") else { return text };
    let digits = after.find(|c: char| c.is_ascii_digit()).expect("a duration is a number");
    let rest = after[digits..].trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}duration_ms{}3{rest}", &after[..digits])
}

/// The results in all encodings, by format.
fn all_shown() -> Vec<Vec<String>> {
    let row = |format| ENCODINGS.iter().map(|(encoding, _)| shown(format, encoding)).collect();
    std::thread::scope(|scope| {
        let rows: Vec<_> = FORMATS.iter().map(|(format, _)| scope.spawn(move || row(format))).collect();
        rows.into_iter().map(|row| row.join().expect("a row")).collect()
    })
}

fn count(text: &str) -> u64 {
    tokens::count_tokens(text)
}

fn page() -> String {
    let results = all_shown();
    let mut page = "# Results as a model reads them\n\n\
        Every tool answers in one of four formats, written in one of five encodings. They are set by `tool_output` in\n\
        `agent.yaml` or in an agent, by `format` and `encoding` in `tools/NAME.yaml`, and by options:\n\n\
        ```sh\nagent tool call grep '{\"pattern\": \"timeout\"}' --format standard --encoding json\n```\n\n\
        A result of a tool always begins with the same bytes, nothing in it changes from run to run (except in\n\
        `detailed`), and content from outside is marked as untrusted within the encoding. Below is the result of this\n\
        call in all of them. Tokens are those of the o200k vocabulary.\n\n"
        .to_owned();
    let header: String = ENCODINGS.iter().map(|(name, _)| format!(" {name} |")).collect();
    let _ = writeln!(page, "| format |{header}\n|---|{}", "---:|".repeat(ENCODINGS.len()));
    for ((name, _), row) in FORMATS.iter().zip(&results) {
        let cells: String = row.iter().map(|text| format!(" {} |", count(text))).collect();
        let _ = writeln!(page, "| {name} |{cells}");
    }
    for ((name, about), row) in FORMATS.iter().zip(&results) {
        let _ = write!(page, "\n## {name}\n\n{about}\n");
        for ((name, language), text) in ENCODINGS.iter().zip(row) {
            let block = format!("```{language}\n{}\n```", text.trim_end());
            let _ = write!(page, "\n{name}, {} tokens:\n\n{block}\n", count(text));
        }
    }
    page
}

#[test]
fn the_page_about_results_shows_what_models_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tool-output.md");
    let made = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &made).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("the page is text");
    assert!(kept == made, "docs/tool-output.md is behind the program; BLESS=1 writes it");
}
