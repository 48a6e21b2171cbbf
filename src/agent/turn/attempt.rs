//! One attempt at a request: sent while the disk syncs, read to its end, logged while it streams.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::agent::conversation::CachedPrefix;
use crate::agent::request::OpenRequest;
use crate::agent::request::beside::read_unseen;
use crate::agent::request::purpose::Purpose;
use crate::agent::request::waiting::{SILENT_FOR, report_silence, wait_for_disk, wait_for_reply, wait_until};
use crate::conversation::event::{EventKind, RequestStatus};
use crate::conversation::message::{FinishReason, Step};
use crate::model::{Delta, ModelErrorKind, ModelRequest, ReplyEnd, ReplyStream, ToolChoice, ToolDefinition};

use super::schema::AnswerSchema;
use super::{Turn, TurnStop};

/// The longest time that streamed text stays unlogged, even when the stream stalls.
const LOGGED_WITHIN: Duration = Duration::from_millis(500);

impl Turn<'_> {
    pub(in crate::agent) async fn attempt(
        &mut self,
        purpose: &Purpose,
        with_tools: bool,
    ) -> Result<Step, TurnStop> {
        if self.run.is_dry {
            self.conversation.asking = None;
            return Err(TurnStop::Shown(self.agent.model.preview(self.request(purpose, with_tools))));
        }
        let syncing = self.conversation.session.begin_sync().map_err(anyhow::Error::from)?;
        let Some(open) = &self.conversation.asking else {
            return Err(self.model_error(ModelErrorKind::BadRequest, "the request was not opened").into());
        };
        // The disk and the network work at the same time.
        let emitter = Arc::clone(&self.run.emitter);
        let model = &self.agent.model;
        let (asked, durable) = tokio::join!(
            wait_for_reply(&emitter, open.send(model.as_ref(), self.request(purpose, with_tools))),
            wait_for_disk(syncing)
        );
        durable?;
        let mut stream = asked.map_err(TurnStop::Model)?;
        match purpose {
            Purpose::Summary(_) => {
                read_unseen(stream.as_mut(), &self.run.emitter).await.map(|end| self.enter_reply(end))
            }
            Purpose::Answer | Purpose::Closing => self.read(stream.as_mut(), purpose).await,
        }
    }

    pub(in crate::agent) fn request<'r>(&'r self, purpose: &'r Purpose, with_tools: bool) -> ModelRequest<'r> {
        let session = &self.conversation.session;
        let (items, aside) = match purpose {
            Purpose::Answer | Purpose::Closing => match &self.withheld {
                Some(withheld) => (withheld.view.items.as_slice(), None),
                None => (session.items(), None),
            },
            Purpose::Summary(asked) => (asked.items.as_slice(), Some(asked.prompt.as_str())),
        };
        let schema = match purpose {
            Purpose::Summary(_) | Purpose::Answer => None,
            Purpose::Closing => self.agent.schema.as_ref().map(AnswerSchema::json),
        };
        let tools: &[ToolDefinition] = if with_tools { self.agent.tools.definitions() } else { &[] };
        ModelRequest {
            system: self.conversation.session.system().map_or("", |prompt| &prompt.text),
            items,
            aside,
            tools,
            tool_choice: purpose.choice(),
            schema,
            session_id: session.id(),
            output_cap: None,
            results: &self.conversation.results,
        }
    }

    /// Reads a reply of the conversation; logs and shows it as it arrives.
    async fn read(&mut self, stream: &mut dyn ReplyStream, purpose: &Purpose) -> Result<Step, TurnStop> {
        let mut log_at = None;
        let mut silent_at = Some(tokio::time::Instant::now() + SILENT_FOR);
        let mut next = stream.next();
        loop {
            let delta = tokio::select! {
                biased;
                delta = &mut next => delta.map_err(TurnStop::Model)?,
                () = wait_until(silent_at) => {
                    silent_at = None;
                    self.run.emitter.emit(report_silence())?;
                    continue;
                }
                () = wait_until(log_at) => {
                    self.conversation.session.log_partial();
                    log_at = None;
                    continue;
                }
            };
            drop(next);
            silent_at = None;
            let (is_much, event) = match delta {
                Delta::Text(text) => (self.conversation.session.stream_text(&text), EventKind::TextDelta { text }),
                Delta::Reasoning(text) => {
                    (self.conversation.session.stream_reasoning(&text), EventKind::ReasoningDelta { text })
                }
                Delta::CallBegun(name) => {
                    self.agent.model.prepare();
                    if let Ok(found) = self.agent.tools.find(&name) {
                        found.prepare();
                        if let Some(history) = self.conversation.file_history().filter(|_| found.may_change()) {
                            history.prepare();
                        }
                    }
                    next = stream.next();
                    continue;
                }
                Delta::Notice(message) => (false, EventKind::Warning { message }),
                Delta::Searched(message) => {
                    self.taint("a web search of the provider");
                    (false, EventKind::Warning { message })
                }
                Delta::Finished(end) if self.is_refused_as_empty(&end, purpose) => {
                    if let Some(open) = self.conversation.asking.take() {
                        self.enter_unanswered(open, RequestStatus::Failed, end.usage, end.cost_usd);
                    }
                    return Err(self.model_error(ModelErrorKind::Incomplete, "the reply was empty").into());
                }
                Delta::Finished(end) => {
                    return Ok(Step { closing: matches!(purpose, Purpose::Closing), ..self.whole(end) });
                }
            };
            if is_much {
                self.conversation.session.log_partial();
                log_at = None;
            } else {
                log_at = log_at.or_else(|| Some(tokio::time::Instant::now() + LOGGED_WITHIN));
            }
            self.run.emitter.emit(event)?;
            next = stream.next();
        }
    }

    /// Records the provider's token count of the request; warns, once per conversation, when it reveals a silent
    /// cut.
    fn take_report(&mut self, input_tokens: u64) {
        let report = self.conversation.ruler.report(input_tokens);
        let warning = report.warning(self.agent.model.find_window().map(|found| found.server));
        if warning.is_some() && !std::mem::replace(&mut self.conversation.warned_of_cut, true) {
            self.run.emitter.warn(warning);
        }
    }

    /// True if the reply has neither text nor calls although it should. A server that sends an empty reply often does
    /// better when asked again.
    fn is_refused_as_empty(&self, end: &ReplyEnd, purpose: &Purpose) -> bool {
        let (text, _) = self.conversation.session.partial();
        let is_empty = end.finish == FinishReason::Stop && end.calls().next().is_none() && text.trim().is_empty();
        is_empty && purpose.choice() == ToolChoice::Auto && !self.may_be_silent()
    }

    /// Counts a reply of the conversation.
    fn whole(&mut self, end: ReplyEnd) -> Step {
        self.run.ledger.count_step();
        if !end.usage.estimated {
            self.take_report(end.usage.input_tokens);
            let tokens = end.usage.cached_input_tokens + end.usage.cache_write_tokens;
            let model = self.agent.model.info().id.clone();
            self.conversation.cached = Some(CachedPrefix { model, tokens, at: Instant::now() });
        }
        self.enter_reply(end)
    }

    /// Ends the request with its reply, as a step.
    fn enter_reply(&mut self, end: ReplyEnd) -> Step {
        let open = self.conversation.asking.take();
        self.output_cap = open.as_ref().and_then(OpenRequest::output_cap);
        let (usage, cost_usd) = open.map_or((end.usage, None), |open| open.finish(&end));
        Step { parts: end.parts, finish_reason: end.finish, usage, cost_usd, ..Step::default() }
    }
}
