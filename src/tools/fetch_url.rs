//! `fetch_url`: the readable text of a page of the public internet. [`Net::fetch`] decides where a request may go;
//! this module makes the response readable.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use encoding_rs::Encoding;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::text;
use crate::config::{Permission, ToolEffect};
use crate::model::ToolDefinition;
use crate::safety::net::{FetchError, FetchRules, Fetched, Net, NetError, parse_url};

use super::commands::bounded::BoundedInput;
use super::files::format_size;
use super::readable::{self, ReadablePage};
use super::{CallContext, Tool, ToolFuture, bytes_for, define_tool, parse_arguments, text_of};

/// The most time for a page, including name lookup and redirects.
const LONGEST: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
const MOST_BYTES: usize = 5 * 1024 * 1024;
const MOST_REDIRECTS: usize = 5;
const ACCEPT: &str = "text/html, application/xhtml+xml, text/plain, application/json;q=0.9, */*;q=0.1";

/// `fetch_url`: a page as text.
pub struct FetchUrl {
    definition: ToolDefinition,
    net: Arc<Net>,
    /// Private hosts that may be reached.
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct FetchArguments {
    url: String,
    max_tokens: Option<usize>,
}

impl FetchUrl {
    /// `allow` names private hosts that may be reached as well.
    pub fn new(net: Arc<Net>, allow: Vec<String>) -> Self {
        let mut definition = ToolDefinition {
            returns: "{url, status, title, text}",
            ..define_tool(
                "fetch_url",
                "Gets a web page as readable text. Public http(s) addresses, text, HTML and JSON only; nothing is sent along.",
                (Permission::Read, &[ToolEffect::Network]),
                json!({
                    "url": { "type": "string" },
                    "max_tokens": { "type": "integer", "minimum": 1, "description": "Most to return" },
                }),
                &["url"],
            )
        };
        definition.default = false;
        Self { definition, net, allow }
    }

    async fn fetch(&self, url: &str, time: Duration) -> Result<Fetched, ToolError> {
        let rules = FetchRules {
            allow: &self.allow,
            most_bytes: MOST_BYTES,
            most_redirects: MOST_REDIRECTS,
            connect_timeout: CONNECT,
        };
        match tokio::time::timeout(time, self.net.fetch(url, ACCEPT, rules)).await {
            Ok(fetched) => fetched.map_err(|error| word_error(&error)),
            Err(_) => {
                let message = format!("no complete answer from {url} within {} s", time.as_secs());
                Err(ToolError::new(ToolErrorKind::Timeout, message))
            }
        }
    }
}

impl Tool for FetchUrl {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn address<'a>(&self, arguments: &'a Value) -> Option<&'a str> {
        text_of(arguments, "url")
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let FetchArguments { url, max_tokens } = parse_arguments(given)?;
            let fetched = self.fetch(&url, LONGEST.min(context.timeout)).await?;
            let page = read_page(&fetched);
            if fetched.status >= 400 {
                return Err(refuse_status(&fetched, page.as_ref()));
            }
            let keep = bytes_for(max_tokens.map_or(context.max_tokens, |most| most.min(context.max_tokens)));
            Ok(match page {
                Some(page) => show_page(&fetched, page, BoundedInput::new(keep, context.keep)),
                None => describe_fetch(&fetched),
            })
        })
    }
}

/// The page as text; `None` for other content.
fn read_page(fetched: &Fetched) -> Option<ReadablePage> {
    let kind = fetched.content_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
        || kind.is_empty() && fetched.body.trim_ascii_start().starts_with(b"<");
    let is_text = is_html
        || kind.starts_with("text/")
        || kind.is_empty() && !fetched.body.contains(&0)
        || ["json", "xml", "yaml", "javascript", "x-sh", "toml", "csv", "ndjson"]
            .iter()
            .any(|end| kind.ends_with(end));
    if !is_text {
        return None;
    }
    let text = decode_body(fetched, is_html);
    if !is_html {
        return Some(ReadablePage { title: String::new(), text: text.into_owned() });
    }
    let base = parse_url(&fetched.url).ok();
    let absolute = |link: &str| {
        let leads_on = !link.is_empty() && !link.starts_with('#');
        let target = base.as_ref().filter(|_| leads_on)?.join(link).ok()?;
        matches!(target.scheme(), "http" | "https").then(|| target.to_string())
    };
    Some(readable::read_html(&text, &absolute))
}

/// Decodes the body by the encoding that the server names, else by a byte order mark or the page itself; else as
/// UTF-8.
fn decode_body(fetched: &Fetched, is_html: bool) -> Cow<'_, str> {
    const WHERE_PAGES_SAY: usize = 1024;
    let start = &fetched.body[..fetched.body.len().min(WHERE_PAGES_SAY)];
    let in_page = is_html.then(|| find_charset(&String::from_utf8_lossy(start))).flatten();
    let named = find_charset(&fetched.content_type).or(in_page).unwrap_or(encoding_rs::UTF_8);
    named.decode(&fetched.body).0
}

fn find_charset(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset=")?;
    let label = rest.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':' | '.'));
    Encoding::for_label(&label.as_bytes()[..end.unwrap_or(label.len())])
}

fn show_page(fetched: &Fetched, page: ReadablePage, mut bounded: BoundedInput<'_>) -> ToolOutput {
    /// A page states the most important things first.
    const HEAD_PERCENT: usize = 90;
    let Fetched { url, status, content_type, whole, .. } = fetched;
    let bytes = page.text.len();
    bounded.push(&page.text);
    let shown = bounded.show(HEAD_PERCENT);
    let title = text::one_line(&page.title, 300);
    let mut observation = if title.is_empty() { url.clone() } else { format!("{title}\n{url}") };
    observation += "\n\n";
    observation += if shown.text.trim().is_empty() { "[the page has no text]" } else { &shown.text };
    if !whole {
        let _ = write!(observation, "\n[only the first {} of the page were read]", format_size(MOST_BYTES as u64));
    }
    ToolOutput {
        result: json!({
            "url": url, "status": status, "title": page.title, "content_type": content_type, "text": page.text,
        }),
        summary: format!("{status}, {}", format_size(bytes as u64)),
        observation,
        truncated: shown.truncated || !whole,
        kept: shown.kept,
        ..ToolOutput::default()
    }
}

fn describe_fetch(fetched: &Fetched) -> ToolOutput {
    let Fetched { url, status, content_type, body, whole } = fetched;
    let least = if *whole { "" } else { "more than " };
    let kind = if content_type.is_empty() { "something that is not text" } else { content_type };
    let what = format!("{kind}, {least}{}", format_size(body.len() as u64));
    ToolOutput {
        result: json!({ "url": url, "status": status, "title": "", "content_type": content_type, "text": "" }),
        observation: format!("{url} is {what}: no text to show."),
        summary: what,
        ..ToolOutput::default()
    }
}

/// An error status, with the server's explanation.
fn refuse_status(fetched: &Fetched, page: Option<&ReadablePage>) -> ToolError {
    let Fetched { url, status, .. } = fetched;
    let kind = match status {
        408 | 425 | 429 | 500.. => ToolErrorKind::Transient,
        _ => ToolErrorKind::Permanent,
    };
    let words = page.map_or(String::new(), |page| text::one_line(&format!("{} {}", page.title, page.text), 400));
    let words = words.trim();
    ToolError::new(kind, format!("{url}: HTTP {status}{}{words}", if words.is_empty() { "" } else { ": " }))
}

fn word_error(error: &FetchError) -> ToolError {
    let kind = match error {
        error if error.is_transient() => ToolErrorKind::Transient,
        FetchError::Net(NetError::Address { .. })
        | FetchError::Login
        | FetchError::Private { .. }
        | FetchError::PrivateName { .. } => ToolErrorKind::Parameter,
        _ => ToolErrorKind::Permanent,
    };
    ToolError::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(content_type: &str, body: &[u8]) -> Fetched {
        Fetched {
            url: "http://h/dir/page".to_owned(),
            status: 200,
            content_type: content_type.to_owned(),
            body: body.to_vec(),
            whole: true,
        }
    }

    #[test]
    fn what_is_text_is_decoded_and_what_is_not_is_described() {
        for (content_type, body, expected) in [
            ("text/html; charset=utf-8", "<p>中".as_bytes(), Some("中")),
            ("text/html", b"<meta charset=\"windows-1252\"><p>caf\xe9", Some("café")),
            ("text/html;charset=Shift_JIS", b"<p>\x93\xfa", Some("日")),
            ("text/plain", b"\xef\xbb\xbf<p> plain", Some("<p> plain")),
            ("text/plain; charset=nonsense", b"a\xff", Some("a\u{fffd}")),
            ("application/problem+json", b"{\"a\":1}", Some("{\"a\":1}")),
            ("", b"<b>guessed</b>", Some("guessed")),
            ("", b"\0\x01", None),
            ("image/png", b"\x89PNG", None),
            (
                "text/html",
                b"<a href='../x#y'>up</a> <a href='mailto:a@b'>mail</a>",
                Some("[up](http://h/x#y) mail"),
            ),
        ] {
            let page = read_page(&fetched(content_type, body));
            assert_eq!(page.as_ref().map(|page| page.text.as_str()), expected, "{content_type}");
        }
        let described = describe_fetch(&fetched("image/png", b"\x89PNG"));
        assert_eq!(described.observation, "http://h/dir/page is image/png, 4 B: no text to show.");
    }
}
