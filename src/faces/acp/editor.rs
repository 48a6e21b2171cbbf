//! The person behind an editor: asked for permission through it.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::rpc::RpcPeer;
use super::updates::{AskedCall, describe_call, name_kind};
use crate::base::text;
use crate::safety::{Approval, Approver, OpenFiles, PlanReview, PlanSheet, Question};

/// The longest wait for an answer about a file.
const FILE_PATIENCE: Duration = Duration::from_secs(5);

/// Asks the person at an editor.
pub struct EditorPerson {
    pub peer: Arc<RpcPeer>,
    pub session: Arc<OnceLock<String>>,
    pub asked: AskedCall,
    pub offers: EditorOffers,
}

/// What an editor said that it can do.
#[derive(Debug, Clone, Copy, Default)]
pub struct EditorOffers {
    pub shows_forms: bool,
    /// It gives the text of its files.
    pub reads_files: bool,
    /// It saves files.
    pub saves_files: bool,
}

impl EditorOffers {
    /// Reads the parameters of `initialize`.
    pub fn read(params: &Value) -> Self {
        let offered = &params["clientCapabilities"];
        Self {
            shows_forms: offered["elicitation"]["form"].is_object(),
            reads_files: offered["fs"]["readTextFile"] == true,
            saves_files: offered["fs"]["writeTextFile"] == true,
        }
    }
}

impl EditorPerson {
    /// The id of the chosen option; `None` if nothing was chosen, which is no permission.
    async fn ask(&self, call: Value, options: Value) -> Option<String> {
        let params = json!({ "sessionId": self.session.get(), "toolCall": call, "options": options });
        let answer = self.peer.request("session/request_permission", &params).await.ok()?;
        let outcome = &answer["outcome"];
        (outcome["outcome"] == "selected").then(|| outcome["optionId"].as_str().map(str::to_owned))?
    }

    /// Asks for words by a form, with the choices as another field of it. `None` if the person gives none.
    async fn ask_words(&self, question: &str, choices: &[String]) -> Option<String> {
        let mut fields = json!({ "words": { "type": "string", "title": "Answer" } });
        let mut required = json!(["words"]);
        if !choices.is_empty() {
            fields = json!({
                "choice": { "type": "string", "title": "Choice", "enum": choices },
                "words": { "type": "string", "title": "Or in your own words" },
            });
            required = json!([]);
        }
        let params = json!({
            "sessionId": self.session.get(), "mode": "form", "message": question,
            "requestedSchema": { "type": "object", "properties": fields, "required": required },
        });
        let answer = self.peer.request("elicitation/create", &params).await.ok()?;
        let given = |field: &str| answer["content"][field].as_str().filter(|words| !words.trim().is_empty());
        let given = given("words").or_else(|| given("choice")).filter(|_| answer["action"] == "accept");
        given.map(str::to_owned)
    }

    /// Asks for something about a file, and waits a moment for the answer.
    async fn ask_about_file(&self, method: &str, path: &Path, mut params: Value) -> Option<Value> {
        params["sessionId"] = json!(self.session.get()?);
        params["path"] = json!(path.to_str()?);
        tokio::time::timeout(FILE_PATIENCE, self.peer.request(method, &params)).await.ok()?.ok()
    }
}

impl OpenFiles for EditorPerson {
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        async move {
            let mut answer = self.ask_about_file("fs/read_text_file", path, json!({})).await?;
            match answer["content"].take() {
                Value::String(text) => Some(text),
                _ => None,
            }
        }
        .boxed()
    }

    fn save<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool> {
        async move {
            let params = json!({ "content": text });
            self.offers.saves_files && self.ask_about_file("fs/write_text_file", path, params).await.is_some()
        }
        .boxed()
    }
}

/// A call as a question shows it, with a text about it.
fn write_call(id: &str, title: &str, kind: &str, text: &str) -> Value {
    let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    json!({ "toolCallId": id, "title": title, "kind": kind, "status": "pending", "content": content })
}

fn option(id: &str, kind: &str, name: &str) -> Value {
    json!({ "optionId": id, "kind": kind, "name": name })
}

impl Approver for EditorPerson {
    fn present(&self) -> bool {
        true
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        self.offers.reads_files.then_some(self)
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        async move {
            let id = self.asked.lock().expect("no holder of the id panics").clone();
            let first = question.preview.lines().next().unwrap_or_default();
            let file = first.strip_prefix("--- a/").filter(|_| question.is_change);
            let title = describe_call(question.tool, &text::reveal_in_line(file.unwrap_or(first)));
            let call = write_call(&id, &title, name_kind(question.tool), &question.to_markdown());
            let mut options = vec![option("yes", "allow_once", "Yes, once")];
            options.extend(question.always.map(|always| {
                option("always", "allow_always", &format!("Always: {}", text::reveal_in_line(always)))
            }));
            options.push(option("no", "reject_once", "No"));
            match self.ask(call, json!(options)).await.as_deref() {
                Some("yes") => Approval::Allow,
                Some("always") if question.always.is_some() => Approval::Always,
                _ => Approval::Deny(String::new()),
            }
        }
        .boxed()
    }

    fn review_plan<'a>(&'a self, sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        async move {
            let form = sheet.form();
            // The comments of a plan are for the terminal, where its form is edited.
            let is_comment = |line: &&str| line.is_empty() || line.starts_with('#');
            let comments = form.lines().take_while(is_comment).filter(|_| sheet.extension() == "yaml").count();
            let steps = form.lines().skip(comments).collect::<Vec<_>>().join("\n");
            let call = write_call("plan", "Carry out this plan?", "think", &steps);
            let options = json!([option("yes", "allow_once", "Yes"), option("no", "reject_once", "No")]);
            match self.ask(call, options).await.as_deref() {
                Some("yes") => PlanReview::Run,
                _ => PlanReview::Refuse(String::new()),
            }
        }
        .boxed()
    }

    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        async move {
            if self.offers.shows_forms {
                return self.ask_words(question, choices).await;
            }
            // An editor without forms asks for choices alone; a free answer is the next message.
            let numbered = choices.iter().enumerate();
            let options: Vec<Value> =
                numbered.map(|(number, choice)| option(&number.to_string(), "allow_once", choice)).collect();
            if options.is_empty() {
                return None;
            }
            let chosen = self.ask(write_call("question", question, "other", question), json!(options)).await?;
            choices.get(chosen.parse::<usize>().ok()?).cloned()
        }
        .boxed()
    }
}
