//! PDFs as input: each wire sends them in its own form, and a server that takes none is named before anything is sent.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

const PDF: &[u8] = b"%PDF-1.4\n1 0 obj << /Type /Page >> endobj\n%%EOF";
const DATA: &str = "JVBERi0xLjQKMSAwIG9iaiA8PCAvVHlwZSAvUGFnZSA+PiBlbmRvYmoKJSVFT0Y=";

fn run(server: &Server, model: &str) -> Run {
    let base = server.url();
    let model = format!(
        "provider: openai\nbase_url: {base}\nmodel: m\napi_key: k\ncapabilities: {{ vision: true }}\n\
         retry: {{ attempts: 1 }}\n{model}"
    );
    Run::new()
        .config("models/m.yaml", &model)
        .file("a.pdf", PDF)
        .args(["run", "-m", "m", "-f", "a.pdf", "sum it up"])
}

/// True if the value is somewhere in the other one.
fn holds(whole: &Value, part: &Value) -> bool {
    whole == part
        || match whole {
            Value::Array(items) => items.iter().any(|item| holds(item, part)),
            Value::Object(fields) => fields.values().any(|field| holds(field, part)),
            _ => false,
        }
}

#[test]
fn each_wire_sends_a_pdf_in_its_own_form() {
    let url = format!("data:application/pdf;base64,{DATA}");
    for (model, part) in [
        (
            "dialect: anthropic\nwire: anthropic\n",
            json!({"type": "base64", "media_type": "application/pdf", "data": DATA}),
        ),
        (
            "dialect: openai\nwire: responses\n",
            json!({"type": "input_file", "filename": "document.pdf", "file_data": url}),
        ),
        (
            "dialect: openrouter\nwire: chat\n",
            json!({"type": "file", "file": {"filename": "document.pdf", "file_data": url}}),
        ),
        ("wire: gemini\n", json!({"inlineData": {"mimeType": "application/pdf", "data": DATA}})),
    ] {
        let server = Server::start([]);
        let run = run(&server, model).run();
        let requests = server.requests();
        assert!(!requests.is_empty(), "{}", run.shown());
        assert!(holds(&requests[0].body, &part), "{model}: {}", requests[0].raw);
    }
}

#[test]
fn a_server_that_takes_no_pdfs_is_named_before_anything_is_sent() {
    let server = Server::always(Reply::text("done"));
    run(&server, "dialect: none\nwire: chat\n").run().exits(2).stderr_has("m takes no PDFs at its server");
    assert!(server.requests().is_empty());
}

#[test]
fn a_pdf_in_a_result_is_a_note_where_the_server_takes_none() {
    let server = Server::start([Reply::call("view_image", &json!({"path": "a.pdf"})), Reply::text("done")]);
    let asked = run(&server, "dialect: none\nwire: chat\n").place();
    Run::at(&asked).args(["run", "-m", "m", "look at a.pdf"]).run().success();
    let raw = &server.requests()[1].raw;
    assert!(raw.contains("A PDF is not shown: this server takes none") && !raw.contains(DATA), "{raw}");
}
