//! The person behind an editor: asked for permission through it.

use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::rpc::RpcPeer;
use super::updates::{AskedCall, describe_call, name_kind};
use crate::safety::{Approval, Approver, PlanReview, PlanSheet, Question};

/// Asks the person at an editor.
pub struct EditorPerson {
    pub peer: Arc<RpcPeer>,
    pub session: Arc<OnceLock<String>>,
    pub asked: AskedCall,
    /// The editor shows forms.
    pub shows_forms: bool,
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
}

fn option(id: &str, kind: &str, name: &str) -> Value {
    json!({ "optionId": id, "kind": kind, "name": name })
}

impl Approver for EditorPerson {
    fn present(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        async move {
            let id = self.asked.lock().expect("no holder of the id panics").clone();
            let helper = question.helper.map(|name| format!("{name}: ")).unwrap_or_default();
            let fence = if question.is_change { "```diff" } else { "```" };
            let opened: Vec<String> = question.opened.iter().map(|path| path.display().to_string()).collect();
            let opened =
                if opened.is_empty() { String::new() } else { format!("\nIt opens {}.", opened.join(", ")) };
            let text =
                format!("{helper}{}{opened}\n\n{fence}\n{}\n```", question.why, question.preview.trim_end());
            let call = json!({
                "toolCallId": id,
                "title": describe_call(question.tool, question.preview.lines().next().unwrap_or_default()),
                "kind": name_kind(question.tool),
                "status": "pending",
                "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
            });
            let mut options = vec![option("yes", "allow_once", "Yes, once")];
            options.extend(
                question.always.map(|always| option("always", "allow_always", &format!("Always: {always}"))),
            );
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
            let call = json!({
                "toolCallId": "plan",
                "title": "Carry out this plan?",
                "kind": "think",
                "status": "pending",
                "content": [{ "type": "content", "content": { "type": "text", "text": sheet.form() } }],
            });
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
            if self.shows_forms {
                return self.ask_words(question, choices).await;
            }
            // An editor without forms asks for choices alone; a free answer is the next message.
            let numbered = choices.iter().enumerate();
            let options: Vec<Value> =
                numbered.map(|(number, choice)| option(&number.to_string(), "allow_once", choice)).collect();
            if options.is_empty() {
                return None;
            }
            let call =
                json!({ "toolCallId": "question", "title": question, "kind": "other", "status": "pending" });
            let chosen = self.ask(call, json!(options)).await?;
            choices.get(chosen.parse::<usize>().ok()?).cloned()
        }
        .boxed()
    }
}
