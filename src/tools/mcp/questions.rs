//! Questions of a server to the person while a call of it runs (elicitation): a form of simple fields, asked one after
//! another, or a page that the person is to open. Nothing is answered without the person, and no form gets a secret.

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::base::secrets::looks_secret;
use crate::base::text;
use crate::base::validator::Validator;
use crate::safety::net;
use crate::tools::AskPerson;

/// How often a field is asked about whose answer does not fit.
const TRIES: usize = 3;
/// The most fields of a form.
const MOST_FIELDS: usize = 20;
const DECLINE: &str = "decline";
const AGREE: &str = "agree";
/// The answer that leaves a field out.
const NOTHING: &str = "-";

/// What a server wants from the person.
pub(super) struct ServerQuestion {
    pub message: String,
    pub kind: QuestionKind,
    /// Dropped when nobody answers any more.
    pub reply: oneshot::Sender<QuestionReply>,
}

pub(super) enum QuestionKind {
    /// A JSON Schema of an object with simple properties.
    Form(Value),
    /// The address of a page.
    Page(String),
}

#[derive(Debug, PartialEq)]
pub(super) enum QuestionReply {
    /// With the fields of a form.
    Accepted(Option<Value>),
    Declined,
    /// Nobody answered.
    Cancelled,
}

/// Has the person answer. The second is a warning about what was declined without asking.
pub(super) async fn answer_question(
    server: &str,
    message: &str,
    kind: &QuestionKind,
    person: &dyn AskPerson,
) -> (QuestionReply, Option<String>) {
    let message = text::one_line(message, 600);
    match kind {
        QuestionKind::Page(url) => answer_page(server, &message, url, person).await,
        QuestionKind::Form(schema) => match find_secret(schema) {
            Some(field) => {
                let why = format!(
                    "the server `{server}` asked for `{field}` in a form, which gets no secrets: declined"
                );
                (QuestionReply::Declined, Some(why))
            }
            None => (answer_form(server, &message, schema, person).await, None),
        },
    }
}

async fn answer_page(
    server: &str,
    message: &str,
    url: &str,
    person: &dyn AskPerson,
) -> (QuestionReply, Option<String>) {
    // As a browser reads it: without line breaks, and with the host's own letters.
    let parsed = net::parse_url(url).ok().filter(|url| url.scheme() == "https" || net::is_loopback(url));
    let Some(url) = parsed else {
        let url = text::one_line(url, 200);
        let why = format!("the server `{server}` wanted a page opened that is not https, {url}: declined");
        return (QuestionReply::Declined, Some(why));
    };
    let question = format!(
        "The server `{server}` wants you to open a page in your browser: {message}\n{url}\nIt is told whether you agree; \
         nothing is opened for you."
    );
    let reply = match person.ask(question, vec![AGREE.to_owned(), DECLINE.to_owned()]).await.as_deref() {
        None => QuestionReply::Cancelled,
        Some(AGREE) => QuestionReply::Accepted(None),
        Some(_) => QuestionReply::Declined,
    };
    (reply, None)
}

/// What titles and descriptions call a secret.
const SECRETS: [&str; 9] = [
    "password", "passphrase", "passcode", "secret", "credential", "api key", "api token", "access token",
    "private key",
];

/// The first field whose name, title or description says that it wants a secret.
fn find_secret(schema: &Value) -> Option<&str> {
    let says_so = |text: &Value| {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        SECRETS.iter().any(|word| text.contains(word))
    };
    let is_secret = |(name, field): &(&String, &Value)| {
        looks_secret(name)
            || field["format"] == "password"
            || says_so(&field["title"])
            || says_so(&field["description"])
    };
    schema["properties"].as_object()?.iter().find(is_secret).map(|(name, _)| name.as_str())
}

async fn answer_form(server: &str, message: &str, schema: &Value, person: &dyn AskPerson) -> QuestionReply {
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    if fields.len() > MOST_FIELDS {
        return QuestionReply::Declined;
    }
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut given = Map::new();
    let mut before = format!("The server `{server}` asks: {message}\n");
    for (name, field) in fields {
        let is_required = required.iter().any(|other| other == name);
        match ask_field(&before, name, field, is_required, person).await {
            Ok(value) => given.extend(value.map(|value| (name.clone(), value))),
            Err(reply) => return reply,
        }
        before.clear();
    }
    QuestionReply::Accepted(Some(Value::Object(given)))
}

/// Asks about one field until the answer fits; `None` leaves it out.
async fn ask_field(
    before: &str,
    name: &str,
    field: &Value,
    is_required: bool,
    person: &dyn AskPerson,
) -> Result<Option<Value>, QuestionReply> {
    let options = list_options(field);
    let mut choices: Vec<String> = options.iter().map(|(title, _)| title.clone()).collect();
    let takes_several = field["type"] == "array";
    if takes_several {
        choices.clear();
    }
    if !choices.is_empty() {
        choices.push(DECLINE.to_owned());
    }
    let mut wrong = String::new();
    for _ in 0..TRIES {
        let question = format!("{wrong}{before}{}", describe_field(name, field, is_required, &options));
        let Some(answer) = person.ask(question, choices.clone()).await else {
            return Err(QuestionReply::Cancelled);
        };
        let answer = answer.trim();
        if answer.eq_ignore_ascii_case(DECLINE) {
            return Err(QuestionReply::Declined);
        }
        if (answer.is_empty() || answer == NOTHING) && (!is_required || field.get("default").is_some()) {
            return Ok(field.get("default").cloned());
        }
        match read_answer(answer, field, &options) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => wrong = format!("That does not fit: {why}\n"),
        }
    }
    Err(QuestionReply::Cancelled)
}

/// What a person may choose, with the value of each; none where they write freely.
fn list_options(field: &Value) -> Vec<(String, Value)> {
    if field["type"] == "boolean" {
        return vec![("yes".to_owned(), json!(true)), ("no".to_owned(), json!(false))];
    }
    let field = if field["type"] == "array" { &field["items"] } else { field };
    let titled = field["oneOf"].as_array().or_else(|| field["anyOf"].as_array());
    if let Some(titled) = titled {
        let option = |one: &Value| {
            let title = one["title"].as_str().or_else(|| one["const"].as_str()).unwrap_or_default();
            (text::one_line(title, 100), one["const"].clone())
        };
        return titled.iter().map(option).collect();
    }
    let values = field["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
    let option = |(at, value): (usize, &Value)| {
        let title = field["enumNames"][at].as_str().or_else(|| value.as_str()).unwrap_or_default();
        (text::one_line(title, 100), value.clone())
    };
    values.iter().enumerate().map(option).collect()
}

fn describe_field(name: &str, field: &Value, is_required: bool, options: &[(String, Value)]) -> String {
    let title = text::one_line(field["title"].as_str().unwrap_or(name), 100);
    let about = field["description"].as_str().map(|about| format!(": {}", text::one_line(about, 300)));
    let several = (field["type"] == "array").then(|| {
        let titles: Vec<&str> = options.iter().map(|(title, _)| title.as_str()).collect();
        format!("; some of {}, with commas between them", titles.join(", "))
    });
    let default = match field.get("default") {
        Some(default) => Some(format!("; `{NOTHING}` is {}", text::one_line(&default.to_string(), 100))),
        None => (!is_required).then(|| format!("; `{NOTHING}` leaves it out")),
    };
    let free = options.is_empty() || several.is_some();
    let decline = free.then(|| format!("; `{DECLINE}` refuses"));
    [Some(title), about, several, default, decline].into_iter().flatten().collect()
}

/// The value of an answer, if it fits the field.
fn read_answer(answer: &str, field: &Value, options: &[(String, Value)]) -> Result<Value, String> {
    let choose = |word: &str| {
        let found = options.iter().find(|(title, value)| {
            title.eq_ignore_ascii_case(word) || value.as_str().is_some_and(|value| value == word)
        });
        found.map(|(_, value)| value.clone()).ok_or_else(|| format!("`{word}` is none of the choices"))
    };
    let value = match field["type"].as_str() {
        Some("array") => {
            answer.split([',', '，']).map(|word| choose(word.trim())).collect::<Result<Value, _>>()?
        }
        Some("number" | "integer") => {
            let number: Option<Value> = serde_json::from_str(answer).ok().filter(Value::is_number);
            number.ok_or_else(|| format!("`{answer}` is no number"))?
        }
        _ if !options.is_empty() => choose(answer)?,
        _ => json!(answer),
    };
    let validator = Validator::with_formats(field).map_err(|why| text::one_line(&why, 200))?;
    validator.check("it does", &value).map_err(|why| text::one_line(&why, 200))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    use super::*;

    /// A question and its choices.
    type AskedField = (String, Vec<String>);

    /// A person who answers so, one after the other, and what they were asked.
    #[derive(Default)]
    struct Answers {
        left: Mutex<Vec<String>>,
        asked: Mutex<Vec<AskedField>>,
    }

    impl AskPerson for Answers {
        fn ask(&self, question: String, choices: Vec<String>) -> BoxFuture<'_, Option<String>> {
            self.asked.lock().expect("one thread").push((question, choices));
            let answer = self.left.lock().expect("one thread").pop();
            async move { answer }.boxed()
        }
    }

    fn answered(kind: &QuestionKind, answers: &[&str]) -> (QuestionReply, Option<String>, Vec<AskedField>) {
        let left = answers.iter().rev().map(|answer| (*answer).to_owned()).collect();
        let person = Answers { left: Mutex::new(left), ..Answers::default() };
        let (reply, warning) =
            answer_question("t", "Please.", kind, &person).now_or_never().expect("it waits for nobody");
        (reply, warning, person.asked.into_inner().expect("one thread"))
    }

    fn form(properties: Value, required: Value) -> QuestionKind {
        QuestionKind::Form(json!({ "type": "object", "properties": properties, "required": required }))
    }

    #[test]
    fn each_field_is_asked_about_and_read_by_its_type() {
        let kind = form(
            json!({
                "name": { "type": "string", "title": "Your name", "minLength": 2 },
                "age": { "type": "integer", "minimum": 0 },
                "sure": { "type": "boolean" },
                "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] },
                "parts": { "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] } },
                "note": { "type": "string" },
                "size": { "type": "number", "default": 1.5 },
            }),
            json!(["name", "age", "sure", "colour"]),
        );
        let (reply, _, asked) = answered(&kind, &["x", "三三", "many", "7", "yes", "green", "a, c", "-", "-"]);
        let expected =
            json!({ "name": "三三", "age": 7, "sure": true, "colour": "g", "parts": ["a", "c"], "size": 1.5 });
        assert_eq!(reply, QuestionReply::Accepted(Some(expected)));
        assert!(
            asked[0].0.starts_with("The server `t` asks: Please.\nYour name; `decline` refuses"),
            "{}",
            asked[0].0
        );
        assert!(asked[1].0.starts_with("That does not fit: "), "{}", asked[1].0);
        assert!(asked[3].0.contains("`many` is no number"), "{}", asked[3].0);
        assert_eq!(asked[4].1, ["yes", "no", "decline"]);
        assert_eq!(asked[5].1, ["Red", "Green", "decline"]);
        assert!(asked[6].0.contains("some of a, b, c, with commas"), "{}", asked[6].0);
    }

    #[test]
    fn a_person_may_decline_or_be_away() {
        let kind = form(json!({ "name": { "type": "string" }, "more": { "type": "string" } }), json!(["name"]));
        assert_eq!(answered(&kind, &["Decline"]).0, QuestionReply::Declined);
        assert_eq!(answered(&kind, &["me"]).0, QuestionReply::Cancelled);
        assert_eq!(answered(&kind, &["", "", ""]).0, QuestionReply::Accepted(Some(json!({ "name": "" }))));
        let number = form(json!({ "n": { "type": "integer" } }), json!(["n"]));
        assert_eq!(answered(&number, &["a", "b", "c", "1"]).0, QuestionReply::Cancelled, "three tries");
    }

    #[test]
    fn no_form_gets_a_secret_and_no_page_is_opened_unasked() {
        for field in [
            json!({ "api_key": { "type": "string" } }),
            json!({ "x": { "type": "string", "format": "password" } }),
            json!({ "x": { "type": "string", "title": "GitHub password" } }),
            json!({ "x": { "type": "string", "description": "your API key" } }),
        ] {
            let (reply, warning, asked) = answered(&form(field, json!([])), &["abc"]);
            assert_eq!((reply, asked.len()), (QuestionReply::Declined, 0));
            assert!(warning.is_some_and(|warning| warning.contains("gets no secrets")));
        }
        let page = |url: &str, answers: &[&str]| answered(&QuestionKind::Page(url.to_owned()), answers);
        let (reply, _, asked) = page("https://example.org/pay?x=1", &["agree"]);
        assert_eq!(reply, QuestionReply::Accepted(None));
        assert!(
            asked[0].0.contains("https://example.org/pay?x=1") && asked[0].1 == ["agree", "decline"],
            "{asked:?}"
        );
        let asked = page("https://exämple.org/\nThe server is yours.", &["agree"]).2;
        assert!(asked[0].0.contains("\nhttps://xn--exmple-cua.org/The%20server"), "{}", asked[0].0);
        assert_eq!(page("https://example.org/", &["decline"]).0, QuestionReply::Declined);
        assert_eq!(page("https://example.org/", &[]).0, QuestionReply::Cancelled);
        for url in ["http://example.org/", "file:///etc/passwd", "javascript:x", "nonsense"] {
            let (reply, warning, asked) = page(url, &["agree"]);
            assert_eq!((reply, asked.len(), warning.is_some()), (QuestionReply::Declined, 0, true), "{url}");
        }
    }
}
