//! Requests beside the conversation: to a role, or for a step of a flow. They borrow nothing of the turn, so that several
//! run at once. What they take is entered in the ledger at once, and waits in a record until the turn writes it to the
//! session, however they end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::agent::clock::PausableClock;
use crate::agent::limits::ReachedLimit;
use crate::agent::stop::TurnStop;
use crate::agent::window::Rates;
use crate::agent::{Agent, Emitter};
use crate::config::RetryConfig;
use crate::conversation::event::{EventKind, RequestStatus};
use crate::conversation::message::{Item, Step, Usage};
use crate::conversation::session::Syncing;
use crate::model::ledger::{Claim, ClosingNeed, RunLedger};
use crate::model::{CallRecord, ChatModel, Delta, ModelRequest, ReplyEnd, ReplyStream, TakenTokens};

use super::waiting::{wait_for_disk, wait_for_reply};
use super::{MOST_LESSONS, OpenRequest, RequestDesk, claim_for, retry, size_as_sent, status_of};

/// A question to a model.
#[derive(Clone)]
pub(in crate::agent) struct BesideQuestion {
    /// Who asks: a role, or a step of a flow.
    pub name: String,
    pub model: Arc<dyn ChatModel>,
    /// The JSON Schema that the reply must match, if any.
    pub schema: Option<Arc<Value>>,
    /// The items before the question.
    pub items: Vec<Item>,
    pub prompt: String,
}

/// What a question needs of the turn that asks it.
pub(in crate::agent) struct BesideDesk<'a> {
    pub agent: &'a Agent,
    pub ledger: RunLedger,
    pub emitter: Arc<Emitter>,
    pub clock: PausableClock,
    pub session_id: String,
    /// The calls of this run as data, for a script.
    pub results: Vec<CallRecord>,
    pub rates: Rates,
    pub closing: ClosingNeed,
    /// True if the limit of steps binds its questions.
    pub counts_steps: bool,
    /// Entries of the log that must be durable before anything is sent.
    pub syncing: Option<Syncing>,
    pub record: Arc<BesideRecord>,
    pub is_dry: bool,
}

/// What requests beside the conversation took, until the session records it.
#[derive(Debug, Default)]
pub(in crate::agent) struct BesideRecord {
    spent: Mutex<Vec<BesideSpending>>,
    in_flight: AtomicU64,
}

/// What one request took.
#[derive(Debug)]
pub(in crate::agent) struct BesideSpending {
    /// Who asked and the reply, if there was one.
    pub reply: Option<(String, String)>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
}

impl BesideRecord {
    /// Takes everything that was not recorded yet.
    pub fn take(&self) -> Vec<BesideSpending> {
        std::mem::take(&mut *self.spent.lock().expect("pushing never panics"))
    }

    fn push(&self, spending: BesideSpending) {
        self.spent.lock().expect("pushing never panics").push(spending);
    }
}

/// A request in flight. One that is dropped counts as cancelled.
struct RequestInFlight {
    open: Option<OpenRequest>,
    record: Arc<BesideRecord>,
}

impl RequestInFlight {
    fn begin(open: OpenRequest, record: &Arc<BesideRecord>) -> Self {
        record.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { open: Some(open), record: Arc::clone(record) }
    }

    fn fail(&mut self, status: RequestStatus, taken: TakenTokens) {
        let Some(open) = self.open.take() else { return };
        let (usage, cost_usd) = open.settle(status, taken.usage, taken.cost_usd);
        if usage.total() > 0 {
            self.record.push(BesideSpending { reply: None, usage, cost_usd });
        }
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.record.in_flight.fetch_sub(1, Ordering::Relaxed);
        let taken = self.open.as_ref().map(OpenRequest::count_cancelled);
        self.fail(RequestStatus::Cancelled, taken.unwrap_or_default());
    }
}

impl BesideDesk<'_> {
    /// Asks a question until there is a complete reply, or an error that a retry cannot fix. Counts as a step of the
    /// conversation.
    pub async fn ask(&mut self, question: &BesideQuestion) -> Result<Step, TurnStop> {
        // Questions in flight will be steps.
        let steps = self.ledger.own_steps() + self.record.in_flight.load(Ordering::Relaxed);
        let steps = self.counts_steps.then_some(steps);
        if let Some(limit) = self.agent.limits.find_reached(&self.ledger, &self.clock, steps) {
            return Err(TurnStop::Limit(limit));
        }
        let texts = question.items.iter().flat_map(Item::texts).chain([question.prompt.as_str()]);
        let input_tokens = texts.map(|text| self.rates.count(text)).sum();
        let role = question.name.clone();
        let model = question.model.info().id.clone();
        self.emitter.emit(EventKind::RoleStarted { role: role.clone(), model, input_tokens })?;
        let step = self.ask_patiently(question, input_tokens).await?;
        self.ledger.count_step();
        let Step { usage, cost_usd, .. } = step;
        let text = self.agent.redactor.redact(&step.text()).into_owned();
        self.record.push(BesideSpending { reply: Some((role.clone(), text)), usage, cost_usd });
        self.emitter.emit(EventKind::RoleReplied { role, usage, cost_usd })?;
        Ok(step)
    }

    async fn ask_patiently(&mut self, question: &BesideQuestion, tokens: u64) -> Result<Step, TurnStop> {
        let info = question.model.info();
        let RetryConfig { attempts, .. } = info.retry;
        let (mut sent, mut attempt, mut lessons) = (0, 1, 0);
        loop {
            sent += 1;
            let request = self.write_request(question);
            if self.is_dry {
                return Err(TurnStop::Shown(question.model.preview(request)));
            }
            let is_sized = self.ledger.limits_sizes();
            let least = if info.scripted { 0 } else { tokens };
            let input_tokens =
                if is_sized { size_as_sent(question.model.as_ref(), request).max(least) } else { tokens };
            let claim = Claim { closing: self.closing, ..claim_for(info, input_tokens) };
            let desk = RequestDesk {
                ledger: self.ledger.clone(),
                emitter: Arc::clone(&self.emitter),
                step: self.ledger.own_steps() + 1,
                role: question.name.clone(),
            };
            let opened = desk.open(info, &claim, sent).await;
            let opened = opened.map_err(|refusal| TurnStop::Limit(ReachedLimit::Spending(refusal)))?;
            wait_for_disk(self.syncing.take()).await?;
            let mut flight = RequestInFlight::begin(opened, &self.record);
            let mut error = match self.send(question, &mut flight).await {
                Err(TurnStop::Model(error)) => error,
                outcome => return outcome,
            };
            let taken = flight.open.as_ref().and_then(OpenRequest::count_taken);
            flight.fail(status_of(&error), taken.unwrap_or_default());
            drop(flight);
            if error.is_lesson && lessons < MOST_LESSONS {
                lessons += 1;
                continue;
            }
            attempt += 1;
            let left = self.agent.limits.max_time.map(|most| most.saturating_sub(self.clock.elapsed()));
            let delay = retry::find_delay(&info.retry, &mut error, attempt, left);
            let Some(delay) = delay else { return Err(error.into()) };
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let cause = self.agent.redactor.redact(&error.to_string()).into_owned();
            self.emitter.emit(EventKind::Retry { attempt, delay_ms, attempts, cause })?;
            tokio::time::sleep(delay).await;
        }
    }

    async fn send(&self, question: &BesideQuestion, flight: &mut RequestInFlight) -> Result<Step, TurnStop> {
        let Some(open) = &flight.open else { return Err(TurnStop::Interrupted) };
        let asked = open.send(question.model.as_ref(), self.write_request(question));
        let mut stream = wait_for_reply(&self.emitter, asked).await.map_err(TurnStop::Model)?;
        let end = read_unseen(stream.as_mut(), &self.emitter).await?;
        let settled = flight.open.take().map(|open| open.finish(&end));
        let (usage, cost_usd) = settled.unwrap_or((end.usage, None));
        Ok(Step { parts: end.parts, finish_reason: end.finish, usage, cost_usd, ..Step::default() })
    }

    fn write_request<'r>(&'r self, question: &'r BesideQuestion) -> ModelRequest<'r> {
        ModelRequest {
            aside: Some(&question.prompt),
            schema: question.schema.as_deref(),
            results: &self.results,
            ..ModelRequest::from_items(&question.items, &self.session_id)
        }
    }
}

/// Reads a reply that nobody sees while it arrives.
pub(in crate::agent) async fn read_unseen(
    stream: &mut dyn ReplyStream,
    emitter: &Emitter,
) -> Result<ReplyEnd, TurnStop> {
    loop {
        match stream.next().await.map_err(TurnStop::Model)? {
            Delta::Text(_) | Delta::Reasoning(_) | Delta::CallBegun(_) => {}
            Delta::Notice(message) | Delta::Searched(message) => emitter.emit(EventKind::Warning { message })?,
            Delta::Finished(end) => return Ok(end),
        }
    }
}
