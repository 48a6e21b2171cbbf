//! docs/tool-output.md shows one result in every format and encoding, with its tokens. It is made here, so it is true.

use std::fmt::Write;

use agent::facade::base::output::{Encoding, ResponseFormat, ToolOutput};
use agent::facade::base::present::{Occasion, Source, encode, view};
use agent::facade::base::tokens::{self, Vocabulary};
use agent::facade::conversation::message::CallStatus;
use serde_json::json;

const FORMATS: [(ResponseFormat, &str, &str); 4] = [
    (
        ResponseFormat::Concise,
        "concise",
        "Only the observation: what matters for the next decision of the model. The default.",
    ),
    (ResponseFormat::Standard, "standard", "Status and summary as well."),
    (
        ResponseFormat::Detailed,
        "detailed",
        "Everything, including values that change with each call: for debugging.",
    ),
    (ResponseFormat::Raw, "raw", "The data as the tool returned it, unprocessed."),
];

const ENCODINGS: [(Encoding, &str, &str); 5] = [
    (Encoding::Text, "text", ""),
    (Encoding::Json, "json", "json"),
    (Encoding::Yaml, "yaml", "yaml"),
    (Encoding::Xml, "xml", "xml"),
    (Encoding::Compact, "compact", ""),
];

/// The result of a `grep` search with two hits.
fn result() -> ToolOutput {
    ToolOutput {
        result: json!({
            "matches": [
                { "path": "src/net.rs", "line": 12, "text": "    timeout: Duration," },
                { "path": "src/net.rs", "line": 40, "text": "    builder.timeout(timeout)" },
            ],
            "total_count": 2,
        }),
        observation: "src/net.rs\n12:     timeout: Duration,\n40:     builder.timeout(timeout)".to_owned(),
        summary: "2 matches in 1 file".to_owned(),
        ..ToolOutput::default()
    }
}

fn shown(format: ResponseFormat, encoding: Encoding) -> String {
    let source = Source { tool: "grep", trusted: false };
    let occasion = Occasion { call_id: "call_7", duration_ms: 3 };
    encode(&view(source, CallStatus::Ok, &result(), format, occasion, 32_000), encoding)
}

fn count(text: &str) -> u64 {
    tokens::count(text, Vocabulary::O200k)
}

fn page() -> String {
    let mut page = "# Results as a model reads them\n\n\
        Every tool answers in one of four formats, written in one of five encodings. They are set by `tool_output` in\n\
        `agent.yaml` or in an agent, by `format` and `encoding` in `tools/NAME.yaml`, and by options:\n\n\
        ```sh\nagent tool call grep '{\"pattern\": \"timeout\"}' --format standard --encoding json\n```\n\n\
        A result of a tool always begins with the same bytes, nothing in it changes from run to run (except in\n\
        `detailed`), and content from outside is marked as untrusted within the encoding. Below is the same result of\n\
        `grep` in all of them. Tokens are those of the o200k vocabulary.\n\n"
        .to_owned();
    let header: String = ENCODINGS.iter().map(|(_, name, _)| format!(" {name} |")).collect();
    let _ = writeln!(page, "| format |{header}\n|---|{}", "---:|".repeat(ENCODINGS.len()));
    for (format, name, _) in FORMATS {
        let cells: String =
            ENCODINGS.iter().map(|(encoding, ..)| format!(" {} |", count(&shown(format, *encoding)))).collect();
        let _ = writeln!(page, "| {name} |{cells}");
    }
    for (format, name, about) in FORMATS {
        let _ = write!(page, "\n## {name}\n\n{about}\n");
        for (encoding, name, language) in ENCODINGS {
            let text = shown(format, encoding);
            let _ =
                write!(page, "\n{name}, {} tokens:\n\n```{language}\n{}\n```\n", count(&text), text.trim_end());
        }
    }
    page
}

#[test]
fn the_page_about_results_shows_what_models_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tool-output.md");
    let made = page();
    if !path.exists() {
        std::fs::create_dir_all(path.parent().expect("a file in a directory")).expect("it can be made");
        std::fs::write(&path, &made).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("the page is text");
    assert!(
        kept == made,
        "docs/tool-output.md is not true any more: delete it, run the tests, and read what they wrote"
    );
}
