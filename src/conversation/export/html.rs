//! A conversation as one page of HTML: no scripts, no addresses, everything escaped, dark and light.

use std::fmt::Write;

use super::{Exported, ExportedPiece};

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
    let _ = write!(out, "<h1>{}</h1>\n<p>{}</p>\n", escape(&exported.title), escape(&exported.describe()));
    for passage in exported.list_passages() {
        let _ = match passage {
            ExportedPiece::Heading(who) => writeln!(out, "<h2>{}</h2>", escape(&who)),
            ExportedPiece::Text(text) => writeln!(out, "<pre class=\"text\">{}</pre>", escape(&text)),
            ExportedPiece::Call(call) => {
                let (name, arguments) = (escape(&call.request.name), escape(&call.request.arguments));
                let result = call.answer.as_ref().map(|answer| escape(&answer.content)).unwrap_or_default();
                writeln!(
                    out,
                    "<details><summary>{name}</summary><pre>{arguments}</pre><pre>{result}</pre></details>"
                )
            }
        };
    }
    for helper in &exported.helpers {
        out.push_str("<hr>\n");
        write_conversation(helper, out);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
