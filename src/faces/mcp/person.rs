//! The person behind a program that uses the agent: asked through it, if it can ask.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::base::text;
use crate::safety::{Approval, Approver, PlanReview, PlanSheet, Question};
use crate::tools::{McpCallNews, McpQuestion};

const YES: &str = "yes, once";
const NO: &str = "no";

/// Asks the person through the client.
pub struct ClientPerson {
    pub news: mpsc::UnboundedSender<McpCallNews>,
    pub can_ask: bool,
}

impl ClientPerson {
    /// The answer; `None` if there is none.
    async fn ask(&self, text: String, choices: Vec<String>) -> Option<String> {
        if !self.can_ask {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        self.news.send(McpCallNews::Asked(McpQuestion { text, choices, answer })).ok()?;
        answered.await.ok()?
    }
}

impl Approver for ClientPerson {
    fn present(&self) -> bool {
        self.can_ask
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        async move {
            if !self.can_ask {
                return Approval::Nobody;
            }
            let always = question.always.map(|always| format!("always: {}", text::reveal_in_line(always)));
            let choices = [Some(YES.to_owned()), always.clone(), Some(NO.to_owned())];
            match self.ask(question.to_markdown(), choices.into_iter().flatten().collect()).await {
                Some(answer) if answer == YES => Approval::Allow,
                Some(answer) if Some(&answer) == always.as_ref() => Approval::Always,
                _ => Approval::Deny(String::new()),
            }
        }
        .boxed()
    }

    fn review_plan<'a>(&'a self, sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        async move {
            let text = format!("Carry out this plan?\n\n{}", sheet.form());
            match self.ask(text, vec![YES.to_owned(), NO.to_owned()]).await.as_deref() {
                Some(YES) => PlanReview::Run,
                _ => PlanReview::Refuse(String::new()),
            }
        }
        .boxed()
    }

    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        self.ask(question.to_owned(), choices.to_vec()).boxed()
    }
}
