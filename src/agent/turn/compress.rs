//! Makes the next request fit: measured and planned in `window`, carried out here. The model writes a summary if
//! the plan needs one, and the view is edited in one pass, so that a provider's cache of the prefix is lost only
//! once.
//!
//! Nothing is recorded before everything is ready: an interrupted compression changes nothing.

use std::future::Future;
use std::pin::Pin;

use jiff::Timestamp;

use crate::agent::Conversation;
use crate::agent::request::purpose::{Purpose, SummaryRequest};
use crate::agent::window::{
    self, Budget, CompressionPlan, Fill, Goal, Learned, Material, RequestHead, RequestSize, SizeReport,
    SummaryFacts,
};
use crate::config::Strategy;
use crate::conversation::event::{Compressed, CompressionReason, EventKind};
use crate::conversation::message::{FinishReason, Step, Summary, Usage};

use super::{Turn, TurnStop};

impl Turn<'_> {
    /// The tokens that a request may hold, lowered by the server's refusals.
    pub(in crate::agent) fn budget(&self) -> Budget {
        self.conversation.budget(self.agent)
    }

    /// The size at which the conversation is compressed, and the size to reach. The request must have been measured.
    pub(in crate::agent) fn goal(&self) -> Goal {
        let weights = self.conversation.ruler.weights();
        Goal::new(&self.agent.context, &self.budget(), self.material(&weights).measure_kept())
    }

    /// Measures the next request. From `threshold` on it is counted instead of estimated.
    pub(in crate::agent) fn measure_from(&mut self, threshold: u64) -> RequestSize {
        let Conversation { session, ruler, is_anchored, .. } = &mut *self.conversation;
        let tried = self.withheld.as_ref().map(|withheld| &withheld.view);
        let request = window::MeasuredRequest {
            model: &self.agent.model.info().id,
            tools: self.agent.tools.definitions(),
            system: session.system().map_or("", |prompt| &prompt.text),
            items: tried.map_or_else(|| session.items(), |view| &view.items),
            ids: tried.map_or_else(|| session.ids(), |view| &view.ids),
        };
        // A resumed session starts from the server's last count.
        if !std::mem::replace(is_anchored, true)
            && let Some((items, tokens)) = session.find_counted()
        {
            ruler.measure(request, u64::MAX);
            let report = ruler.anchor(items, tokens);
            let prefix_tokens = if report == SizeReport::Plausible { tokens } else { 0 };
            return RequestSize { prefix_tokens, ..ruler.measure(request, threshold) };
        }
        ruler.measure(request, threshold)
    }

    /// Measures the next request.
    pub(in crate::agent) fn measure(&mut self) -> RequestSize {
        let threshold = self.agent.context.compress_at.take_share(self.budget().tokens);
        self.measure_from(threshold)
    }

    /// Compresses the conversation if the next request would pass the threshold. A request that still exceeds the
    /// budget cannot be sent; but if anything about sizes was learned from the server, it is asked again without that.
    pub(in crate::agent) async fn fit(&mut self) -> Result<RequestSize, TurnStop> {
        self.heed_server().await?;
        let mut fitted = self.fit_into_budget().await;
        while matches!(fitted, Err(TurnStop::ContextFull(_))) && (self.cross_price_tier() || self.forget_server())
        {
            fitted = self.fit_into_budget().await;
        }
        let size = fitted?;
        self.tell_price_tier(size.tokens)?;
        Ok(size)
    }

    /// Forgets what the server has taught about sizes: the budget of its refusals and the ratio of its counts, either of
    /// which may have been wrong. False if there was nothing.
    pub(in crate::agent) fn forget_server(&mut self) -> bool {
        let had_budget = self.conversation.learned.take().is_some();
        self.conversation.ruler.forget_reports() || had_budget
    }

    /// Lowers the budget to the window that the server reports, once it has reported one.
    async fn heed_server(&mut self) -> Result<(), TurnStop> {
        let model = &self.agent.model;
        model.settle().await;
        let Some(found) = model.find_window().filter(|_| !self.conversation.heeded_server) else { return Ok(()) };
        self.conversation.heeded_server = true;
        if found.window >= self.agent.budget.window {
            return Ok(());
        }
        let info = model.info();
        let budget = self.budget().tokens_in(found.window, info, &self.agent.context);
        self.conversation.learned = Some((info.id.clone(), budget));
        let (server, window, name) = (found.server, found.window, &info.name);
        let message = match found.largest {
            Some(largest) if largest <= window => return Ok(()),
            Some(largest) => format!(
                "{server} is asked for a window of {window} tokens for {}, which could have {largest}: set \
                 `context_window` in models/{name}.yaml to what the memory holds",
                info.id
            ),
            None => format!(
                "{server} runs {} with a window of {window} tokens: the budget is {budget} from now on. A larger \
                 window is set there; `context_window: {window}` in models/{name}.yaml says so beforehand",
                info.id
            ),
        };
        Ok(self.run.emitter.emit(EventKind::Warning { message })?)
    }

    async fn fit_into_budget(&mut self) -> Result<RequestSize, TurnStop> {
        let size = self.measure();
        self.note_price_tier(size.tokens);
        let (budget, fixed) = (self.budget(), self.conversation.ruler.measure_fixed());
        if let Some(why) = budget.too_small(fixed, self.agent.model.info(), &self.agent.context) {
            return Err(TurnStop::ContextFull(why));
        }
        let goal = self.goal();
        // A person who undid the compressions wants none while the request still fits.
        let limit = if self.conversation.session.is_held() { goal.most } else { goal.at };
        if size.tokens <= limit || self.compress(CompressionReason::Threshold, "").await?.is_none() {
            return if size.tokens > goal.most { Err(self.full()) } else { Ok(size) };
        }
        let mut after = self.measure();
        // The plan underestimated the size; now it is known.
        while after.tokens > goal.most {
            let before = after.tokens;
            let done = self.compress(CompressionReason::Threshold, "").await?;
            after = self.measure();
            if done.is_none() || after.tokens >= before {
                return Err(self.full());
            }
        }
        // The compression's own event reports the broken prefix.
        Ok(RequestSize { broken: None, ..after })
    }

    /// Reacts to a server that refused the request as too long: lowers the budget and makes the conversation fit.
    /// False when nothing can be gained.
    pub(in crate::agent) async fn shrink(&mut self, refusal: &str) -> Result<bool, TurnStop> {
        let sent = self.measure().tokens;
        let Learned { budget, limit } =
            window::learn_window(refusal, sent, self.conversation.ruler.measure_fixed(), self.least_output());
        let budget = budget.min(self.budget().tokens);
        self.conversation.learned = Some((self.agent.model.info().id.clone(), budget));
        let message = match limit {
            Some(limit) => format!("the server takes at most {limit} tokens; the budget is {budget} from now on"),
            None => format!("{sent} tokens are too many for the server; the budget is {budget} from now on"),
        };
        self.run.emitter.emit(EventKind::Warning { message })?;
        Ok(self.compress(CompressionReason::Overflow, "").await?.is_some())
    }

    /// Compresses the conversation once. `None` when the gain is not worth losing the cache.
    ///
    /// Boxed, since a summary needs a request, which may have to compress.
    pub(in crate::agent) fn compress<'t>(
        &'t mut self,
        reason: CompressionReason,
        focus: &'t str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Compressed>, TurnStop>> + Send + 't>> {
        Box::pin(async move {
            let before = self.measure().tokens;
            let Some(plan) = self.plan(reason).filter(|plan| !plan.edits.is_empty()) else { return Ok(None) };
            let Some(focus) = self.hear_before_compress(reason, focus).await else { return Ok(None) };
            self.run.emitter.emit(EventKind::ContextCompressing { reason, tokens: before })?;
            let mut done = Compressed {
                reason,
                strategy: self.agent.context.strategy.name().to_owned(),
                tokens_before: before,
                tokens_after: plan.tokens,
                budget: self.budget().tokens,
                masked: plan.masked,
                summarized: plan.removed.len(),
                unloaded: plan.unloaded.len(),
                usage: Usage::default(),
                cost_usd: None,
            };
            let summary =
                if plan.removed.is_empty() { None } else { Some(self.summary(&plan, &focus, &mut done).await?) };
            self.carry_out(&plan, summary, &mut done)?;
            Ok(Some(done))
        })
    }

    /// Plans a compression. The request must have been measured.
    pub(in crate::agent) fn plan(&self, reason: CompressionReason) -> Option<CompressionPlan> {
        let weights = self.conversation.ruler.weights();
        let asked = reason == CompressionReason::Manual;
        let mut goal = Goal { asked, ..self.goal() };
        // A refused request must become smaller, whatever the count says.
        if reason == CompressionReason::Overflow {
            goal.at = goal.at.min(goal.to);
        }
        window::plan_compression(self.agent.context.strategy, self.material(&weights), goal)
    }

    fn material<'m>(&'m self, weights: &'m [u64]) -> Material<'m> {
        let session = &self.conversation.session;
        Material {
            items: session.items(),
            ids: session.ids(),
            weights,
            fixed: self.conversation.ruler.measure_fixed(),
            pinned: session.list_pinned(),
            ruler: &self.conversation.ruler,
        }
    }

    /// The summary of the removed items: parts written by the model, or by code if the strategy asks no model
    /// or the model's parts are unusable.
    async fn summary(
        &mut self,
        plan: &CompressionPlan,
        focus: &str,
        done: &mut Compressed,
    ) -> Result<Summary, TurnStop> {
        let weights = self.conversation.ruler.weights();
        let todo = self.conversation.session.state().keys.get("todo");
        let facts = SummaryFacts::collect(self.material(&weights), plan, todo);
        let asks = matches!(self.agent.context.strategy, Strategy::Staged | Strategy::Summary);
        let body = if asks && self.may_ask_for_summary(done) {
            let body = self.ask_for_summary(plan, &facts, focus, done).await?;
            let whole = done.tokens_before + self.conversation.compressed_away;
            self.conversation.failed_summary = body.is_none().then_some(whole);
            body
        } else {
            None
        };
        Ok(window::compose_summary(&facts, &body.unwrap_or_else(|| window::in_code(&facts))))
    }

    /// False if a summary failed and the conversation has not grown by a fifth since, unless a person asks for one.
    fn may_ask_for_summary(&self, due: &Compressed) -> bool {
        let whole = due.tokens_before + self.conversation.compressed_away;
        let has_grown = |failed: u64| whole >= failed + failed / 5;
        due.reason == CompressionReason::Manual || self.conversation.failed_summary.is_none_or(has_grown)
    }

    /// The parts of a summary; `None`, with a warning, when the model gave no usable ones. The usage is added to
    /// `done`.
    ///
    /// The first attempt uses the same prefix, to profit from a provider's cache; the second is shorter; there is
    /// no third, and no second if the server is out of order.
    async fn ask_for_summary(
        &mut self,
        plan: &CompressionPlan,
        facts: &SummaryFacts,
        focus: &str,
        done: &mut Compressed,
    ) -> Result<Option<String>, TurnStop> {
        let prompt = self.agent.briefing.compression(self, facts, focus)?;
        let mut why = String::new();
        for with_less in [false, true] {
            let Some(asked) = self.prepare_summary(plan, &prompt, with_less, done.reason) else { continue };
            match self.ask(Purpose::Summary(asked)).await {
                Ok(step) => {
                    done.usage += step.usage;
                    if let Some(cost) = step.cost_usd {
                        *done.cost_usd.get_or_insert(0.0) += cost;
                    }
                    match read_summary(&step, facts) {
                        Ok(summary) => return Ok(Some(self.agent.redactor.redact(&summary).into_owned())),
                        Err(mistake) => why = mistake,
                    }
                }
                Err(TurnStop::Model(error)) => {
                    why = self.agent.redactor.redact(&error.to_string()).into_owned();
                    if error.is_transient() {
                        break;
                    }
                }
                Err(TurnStop::ContextFull(error)) => why = self.agent.redactor.redact(&error).into_owned(),
                Err(stop) => return Err(stop),
            }
        }
        let message = format!("the model gave no usable summary ({why}); a summary made in code is used instead");
        self.run.emitter.emit(EventKind::Warning { message })?;
        Ok(None)
    }

    /// The request for a summary; `None` if it cannot cover all items.
    fn prepare_summary(
        &self,
        plan: &CompressionPlan,
        prompt: &str,
        with_less: bool,
        reason: CompressionReason,
    ) -> Option<SummaryRequest> {
        let weights = self.conversation.ruler.weights();
        let (material, most) = (self.material(&weights), self.budget().tokens);
        let asked = self.conversation.ruler.weigh(prompt);
        let (items, tokens) = if with_less {
            // Half of a refused size is surely smaller; tools are left out as well.
            let room = (most / 2).saturating_sub(asked);
            (window::with_less(material, plan, room), room)
        } else if reason == CompressionReason::Overflow {
            return None;
        } else {
            let prefix = window::summary_prefix(material, plan, most, asked)?;
            (material.items[..prefix].to_vec(), material.fixed + weights[..prefix].iter().sum::<u64>())
        };
        Some(SummaryRequest { items, prompt: prompt.to_owned(), with_tools: !with_less, tokens: tokens + asked })
    }

    /// Edits the view, and tells the observers.
    fn carry_out(
        &mut self,
        plan: &CompressionPlan,
        summary: Option<Summary>,
        done: &mut Compressed,
    ) -> Result<(), TurnStop> {
        let now = Timestamp::now();
        self.conversation.cached = None;
        self.conversation.session.compress(done, &plan.edits, summary, now).map_err(anyhow::Error::from)?;
        for (name, tokens) in &plan.unloaded {
            self.forget_skill(name, *tokens)?;
        }
        self.conversation.note_knowledge(now);
        self.render_again()?;
        done.tokens_after = self.measure().tokens;
        self.conversation.compressed_away += done.tokens_before.saturating_sub(done.tokens_after);
        self.run.emitter.emit(EventKind::ContextCompressed(done.clone()))?;
        Ok(())
    }

    /// The error of a full window: tells the person what fills it.
    fn full(&mut self) -> TurnStop {
        let fill = self.fill();
        TurnStop::ContextFull(format!(
            "the conversation cannot be made to fit: it has {} tokens, the budget is {} ({}). Start a new session, \
             ask for less at once, or raise context.budget if the model holds more",
            fill.used,
            fill.budget.tokens,
            fill.sentence()
        ))
    }

    /// The contents of the window.
    pub(in crate::agent) fn fill(&mut self) -> Fill {
        let size = self.measure().tokens;
        self.note_price_tier(size);
        let ruler = &self.conversation.ruler;
        let (lists, instructions) = self.agent.briefing.elastic();
        let head = RequestHead {
            tools: ruler.tools(),
            system: ruler.measure_fixed().saturating_sub(ruler.tools()),
            lists: ruler.weigh(&lists),
            instructions: ruler.weigh(instructions),
        };
        let items = self.conversation.session.items();
        Fill::new(items, &ruler.weights(), head, self.budget(), self.goal().at)
    }
}

/// The summary that a reply is; or the reason that it cannot be used as one.
fn read_summary(step: &Step, facts: &SummaryFacts) -> Result<String, String> {
    if step.has_calls() {
        return Err("it called tools".to_owned());
    }
    if step.finish_reason == FinishReason::Length {
        return Err("the output limit cut it".to_owned());
    }
    window::complete_summary(&step.text(), &facts.previous, facts.room, &facts.rates)
}
