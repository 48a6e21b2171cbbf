//! A conversation as one page of HTML: no scripts, no addresses, everything escaped, dark and light.

use std::fmt::Write;

use super::{Exported, name_author};
use crate::conversation::message::{Item, ReplyPart};

const STYLE: &str = "
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1rem; margin: 2rem 0 0; opacity: 0.7; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.5rem 0; }
pre.text { font: inherit; }
details { border-left: 3px solid #8888; padding-left: 0.75rem; margin: 0.5rem 0; }
";

pub(super) fn write_html(exported: &Exported) -> String {
    let title = escape(&exported.title);
    let mut out = format!(
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    );
    write_conversation(exported, &mut out);
    out.push_str("</body>\n</html>\n");
    out
}

fn write_conversation(exported: &Exported, out: &mut String) {
    let Exported { id, title, model, agent, created_at, .. } = exported;
    let facts = format!("Session {id}, {created_at}, agent {agent}, model {model}");
    let _ = write!(out, "<h1>{}</h1>\n<p>{}</p>\n", escape(title), escape(&facts));
    let heading = |out: &mut String, name: &str| {
        let _ = writeln!(out, "<h2>{}</h2>", escape(name));
    };
    for item in &exported.items {
        match item {
            Item::Said(said) => {
                heading(out, name_author(said.author));
                said.texts().for_each(|text| write_text(text, out));
            }
            Item::Summary(summary) => {
                heading(out, "Summary");
                write_text(&summary.text, out);
            }
            Item::Step(step) => {
                heading(out, "Agent");
                for part in &step.parts {
                    match part {
                        ReplyPart::Text { text, .. } => write_text(text, out),
                        ReplyPart::Call(call) => {
                            let (name, arguments) = (&call.request.name, &call.request.arguments);
                            let result = call.answer.as_ref().map_or("", |answer| &answer.content);
                            let _ = writeln!(
                                out,
                                "<details><summary>{}</summary><pre>{}</pre><pre>{}</pre></details>",
                                escape(name),
                                escape(arguments),
                                escape(result)
                            );
                        }
                        ReplyPart::Reasoning { .. } => {}
                    }
                }
            }
        }
    }
    for helper in &exported.helpers {
        out.push_str("<hr>\n");
        write_conversation(helper, out);
    }
}

fn write_text(text: &str, out: &mut String) {
    if !text.trim().is_empty() {
        let _ = writeln!(out, "<pre class=\"text\">{}</pre>", escape(text.trim()));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
