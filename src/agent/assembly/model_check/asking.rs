//! Asks the questions of a check, one request at a time, and stops if the next one would fail too.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::{RunOptions, SetupError, chosen_model, gather_model_surroundings};
use super::fitting::{self, Auto};
use super::judgement::{self, CheckAnswer, Feature, FeatureOutcome, Finding};
use super::questions;
use crate::base::secrets::Redactor;
use crate::config::{ApiKey, Capabilities, Config, ModelConfig, ModelProvider};
use crate::conversation::message::{Cost, Item, ReplyPart, Usage};
use crate::model::ledger::cost_usd;
use crate::model::{
    self, ChatModel, Delta, ModelError, ModelErrorKind, ModelRequest, Probed, RememberedRefusal, ReplyEnd,
    Surroundings, ToolChoice, WindowSource,
};

/// The most tokens of an answer; some models reason before they answer.
const MOST_OUTPUT: u64 = 2048;

/// The tokens of a prefix that is long enough for every provider's cache, if the window has room for it.
const LONG_PREFIX: u64 = 4500;

/// The session of all questions.
const SESSION: &str = "model-check";

/// A check that is ready to ask.
pub struct ModelCheck {
    chosen: ModelConfig,
    around: Surroundings,
    /// What the server refused before, forgotten now: the check finds out anew.
    remembered: Vec<RememberedRefusal>,
    /// The model with everything switched on that could work.
    asked: ModelConfig,
    model: Arc<dyn ChatModel>,
    /// The model as it would be used if its file declared nothing.
    auto: Arc<dyn ChatModel>,
    redactor: Redactor,
    key_variable: Option<String>,
}

/// The result of a check.
#[derive(Debug)]
pub struct ModelCheckResult {
    /// The provider's name for the model.
    pub id: String,
    pub findings: Vec<Finding>,
    /// What the server refused before, by which requests were changed until now.
    pub remembered: Vec<RememberedRefusal>,
    /// The server's own description, if it is a local one.
    pub probed: Option<Probed>,
    pub window: CheckedWindow,
    /// The number of requests sent, including refused ones.
    pub requests: usize,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// The model file that fits.
    pub file: Map<String, Value>,
    /// True if the file declares nothing beyond the automatic choices.
    pub is_auto: bool,
}

/// The window of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedWindow {
    pub tokens: u64,
    /// The source of the number.
    pub source: &'static str,
}

/// The result of one short answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    pub streams: bool,
    pub window: CheckedWindow,
    /// True if the model is known or declared to call tools; this is not tried.
    pub calls_tools: bool,
    /// True if the model is known or declared to see pictures; this is not tried.
    pub sees: bool,
    pub usage: Usage,
}

impl ModelCheck {
    /// The number of requests in a check without refusals.
    pub const REQUESTS: usize = 7;

    /// Prepares a check of the model that `options` name. Sends nothing.
    ///
    /// # Errors
    /// The model does not exist, its configuration is not enough to reach it, or it is a script.
    pub fn new(config: &Config, options: &RunOptions) -> Result<Self, SetupError> {
        let agent = config.agent(options.agent.as_deref()).map_err(SetupError::usage)?;
        let chosen = chosen_model(config, agent, options)?;
        if chosen.provider != ModelProvider::Openai {
            let name = &chosen.name;
            return Err(SetupError::usage(format!("`{name}` is a script: there is no server to ask")));
        }
        let around = gather_model_surroundings(config, options)?;
        let remembered = model::forget_refusals(&chosen, &around).map_err(SetupError::configuration)?;
        let undeclared = ModelConfig {
            capabilities: Capabilities::default(),
            context_window: None,
            max_output_tokens: None,
            ..chosen.clone()
        };
        let auto = model::connect_model(&undeclared, &around).map_err(SetupError::configuration)?;
        let window = chosen.context_window.unwrap_or(auto.info().context_window);
        let declared = chosen.capabilities;
        let asked = ModelConfig {
            capabilities: Capabilities {
                strict_tools: declared.strict_tools,
                prompt_cache_key: declared.prompt_cache_key,
                cache_breakpoints: declared.cache_breakpoints,
                structured_output: Some(true),
                vision: Some(true),
                ..Capabilities::default()
            },
            // The check itself asks the server for its window, so the first request must not.
            context_window: Some(window),
            max_output_tokens: Some(
                chosen.max_output_tokens.unwrap_or(MOST_OUTPUT).min(MOST_OUTPUT).min(window / 4),
            ),
            ..chosen.clone()
        };
        let model = model::connect_model(&asked, &around).map_err(SetupError::configuration)?;
        let key = chosen.api_key.as_ref().and_then(ApiKey::given).filter(|key| !key.is_empty());
        let key_variable = key.and_then(|key| {
            let (name, _) = config.env.iter().find(|(_, value)| value.trim() == key)?;
            Some(name.to_owned())
        });
        Ok(Self { chosen, around, remembered, asked, model, auto, redactor: config.redactor(), key_variable })
    }

    /// The name that the model was chosen by.
    pub fn name(&self) -> &str {
        &self.chosen.name
    }

    /// The server, without secrets.
    pub fn base_url(&self) -> Option<String> {
        let base_url = self.chosen.base_url.as_deref()?;
        Some(self.redactor.redact_known(base_url).into_owned())
    }

    /// Asks all questions. `tell` is called before each one.
    ///
    /// # Errors
    /// The server does not answer at all.
    pub async fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<ModelCheckResult, ModelError> {
        let mut asker = Asker::new(Arc::clone(&self.model), tell);
        let mut findings = self.greet(&mut asker).await?;
        let probed = model::probe_server(&self.asked, &self.around).await.ok().flatten();
        let window = self.window(probed.as_ref());
        self.ask_rest(&mut asker, window, &mut findings).await;

        let info = self.auto.info();
        let auto = Auto {
            window: info.context_window,
            knows_window: info.window_source != WindowSource::Assumed,
            sees: info.sees,
            sends_schema: sends_schema(self.auto.as_ref()),
        };
        let known = probed.as_ref().and_then(|probed| probed.window).or(self.chosen.context_window);
        let differing = fitting::collect_differences(&findings, asker.model.learnt(), auto, known);
        let is_auto = differing.is_empty();
        let file =
            fitting::make_model_file(&self.chosen, self.base_url(), self.key_variable.as_deref(), differing);
        Ok(ModelCheckResult {
            id: info.id.clone(),
            findings,
            remembered: self.remembered.clone(),
            probed,
            window,
            requests: asker.requests,
            usage: asker.usage,
            cost_usd: asker.cost.usd(),
            file,
            is_auto,
        })
    }

    /// Asks for one short answer.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn reach(&self) -> Result<Reached, ModelError> {
        let greeting = questions::ask_greeting();
        let request = make_request(&greeting);
        let end = read_to_end(self.model.as_ref(), request).await?;
        let probed = model::probe_server(&self.asked, &self.around).await.ok().flatten();
        Ok(Reached {
            streams: end.streamed,
            window: self.window(probed.as_ref()),
            calls_tools: self.chosen.capabilities.tools,
            sees: self.chosen.capabilities.vision.unwrap_or(self.auto.info().sees),
            usage: end.usage,
        })
    }

    /// Asks the first question: whether the server answers at all, and whether it streams.
    async fn greet(&self, asker: &mut Asker<'_>) -> Result<Vec<Finding>, ModelError> {
        let greeting = questions::ask_greeting();
        let request = make_request(&greeting);
        let mut heard = asker.hear("an answer", request).await;
        let (mut refusal, mut whole) = (None, self.asked.clone());
        whole.capabilities.streaming = false;
        if let Err(error) = &heard.reply
            && error.kind == ModelErrorKind::BadRequest
            && error.message.to_lowercase().contains("stream")
            && let Ok(model) = model::connect_model(&whole, &self.around)
        {
            refusal = Some(error.message.clone());
            asker.model = model;
            heard = asker.hear("an answer in one piece", request).await;
        }
        let end = heard.reply.as_ref().map_err(Clone::clone)?;
        let mut findings = judgement::of_greeting(&heard, end).to_vec();
        if let Some(words) = refusal {
            findings.retain(|finding| finding.feature != Feature::Streaming);
            findings.insert(1, Feature::Streaming.is(FeatureOutcome::DoesNot, words));
        }
        Ok(findings)
    }

    async fn ask_rest(&self, asker: &mut Asker<'_>, window: CheckedWindow, findings: &mut Vec<Finding>) {
        let tools = questions::list_test_tools();
        let with_tools =
            |items| ModelRequest { tools: &tools, tool_choice: ToolChoice::Auto, ..make_request(items) };
        let picture = questions::ask_picture();
        let call = asker.ask("a tool call", with_tools(&picture)).await;
        let finding = judge_answer(Feature::ToolCalls, call.as_ref(), judgement::of_call);
        let refuses_tools = finding.outcome == FeatureOutcome::DoesNot;
        findings.push(finding);

        let (two_calls, shown) = (questions::two_calls(), questions::picture_shown(call_of(call)));
        if refuses_tools {
            let why = "not asked, because it needs tools";
            findings.push(Feature::ParallelCalls.is(FeatureOutcome::Unknown, why));
            findings.push(Feature::Vision.is(FeatureOutcome::Unknown, why));
        } else {
            let heard = asker.ask("two calls at once", with_tools(&two_calls)).await;
            findings.push(judge_answer(Feature::ParallelCalls, heard.as_ref(), judgement::of_two_calls));
            let heard = asker.ask("a picture", with_tools(&shown)).await;
            // True if a refusal has switched it off.
            let learnt = asker.model.learnt();
            let taken_back = learnt.keys.get("capabilities").is_some_and(|known| known.get("vision").is_some());
            findings.push(judge_answer(Feature::Vision, heard.as_ref(), |heard| {
                judgement::of_picture(heard, taken_back)
            }));
        }

        let finding = if sends_schema(asker.model.as_ref()) {
            let (items, schema) = (questions::ask_structured(), questions::answer_schema());
            let request = ModelRequest { schema: Some(&schema), ..make_request(&items) };
            let heard = asker.ask("an answer by a schema", request).await;
            judge_answer(Feature::Schema, heard.as_ref(), judgement::of_schema)
        } else {
            Feature::Schema.is(FeatureOutcome::Unknown, "not asked: this server is sent no schemas (dialect)")
        };
        findings.push(finding);

        let long = questions::long_system(LONG_PREFIX.min(window.tokens / 3));
        let items = questions::ask_text("Go on.");
        let request = ModelRequest { system: &long, ..make_request(&items) };
        let first = asker.ask("a longer prefix", request).await;
        let second = asker.ask("the same prefix again", request).await;
        findings.push(match (&first, &second) {
            (Some(first), Some(second)) => judgement::of_cache(first, second),
            (Some(failed), None) => judgement::of_cache(failed, failed),
            (None, _) => not_asked(Feature::Caching),
        });
    }

    fn window(&self, probed: Option<&Probed>) -> CheckedWindow {
        let info = self.auto.info();
        let served = probed.and_then(|probed| Some((probed.window?, probed.server)));
        let (tokens, source) = match (served, self.chosen.context_window, info.window_source) {
            (Some(served), ..) => served,
            (None, Some(tokens), _) => (tokens, "declared"),
            (None, None, WindowSource::Catalogue) => (info.context_window, "catalogue"),
            (None, None, WindowSource::Assumed | WindowSource::Declared) => (info.context_window, "assumed"),
        };
        CheckedWindow { tokens, source }
    }
}

/// Asks questions, and counts requests and cost.
struct Asker<'t> {
    model: Arc<dyn ChatModel>,
    tell: &'t mut dyn FnMut(&str),
    requests: usize,
    usage: Usage,
    cost: Cost,
    /// True once the next question would fail as the last one did.
    ended: bool,
}

impl<'t> Asker<'t> {
    fn new(model: Arc<dyn ChatModel>, tell: &'t mut dyn FnMut(&str)) -> Self {
        Self { model, tell, requests: 0, usage: Usage::default(), cost: Cost::default(), ended: false }
    }

    /// Asks a question; `None` if no more questions are asked.
    async fn ask(&mut self, what: &str, request: ModelRequest<'_>) -> Option<CheckAnswer> {
        if self.ended {
            return None;
        }
        Some(self.hear(what, request).await)
    }

    async fn hear(&mut self, what: &str, request: ModelRequest<'_>) -> CheckAnswer {
        (self.tell)(what);
        let before = self.model.learnt().refusals.len();
        let reply = read_to_end(self.model.as_ref(), request).await;
        let refusals = self.model.learnt().refusals.split_off(before);
        self.requests += 1 + refusals.len();
        if let Ok(end) = &reply {
            let prices = self.model.info().prices.as_ref();
            let cost = end.cost_usd.or_else(|| prices.map(|prices| cost_usd(&end.usage, prices)));
            let about = end.cost_usd.is_none() && prices.is_some_and(|prices| prices.about);
            self.usage += Usage { cost_about: about, ..end.usage };
            self.cost.add(&end.usage, cost);
        }
        let heard = CheckAnswer { reply, refusals };
        self.ended = heard.ends_all();
        heard
    }
}

/// A question without tools and without a schema.
fn make_request(items: &[Item]) -> ModelRequest<'_> {
    ModelRequest { system: questions::SYSTEM, ..ModelRequest::from_items(items, SESSION) }
}

/// Reads the reply to a request, which is sent again as long as the server's refusals teach something.
async fn read_to_end(model: &dyn ChatModel, request: ModelRequest<'_>) -> Result<ReplyEnd, ModelError> {
    const MOST_LESSONS: usize = 3;
    let mut lessons = 0;
    let mut stream = loop {
        match model.ask(request).await {
            Err(error) if error.is_lesson && lessons < MOST_LESSONS => lessons += 1,
            asked => break asked?,
        }
    };
    loop {
        if let Delta::Finished(end) = stream.next().await? {
            return Ok(end);
        }
    }
}

fn judge_answer(
    feature: Feature,
    heard: Option<&CheckAnswer>,
    judge: impl FnOnce(&CheckAnswer) -> Finding,
) -> Finding {
    heard.map_or_else(|| not_asked(feature), judge)
}

fn not_asked(feature: Feature) -> Finding {
    feature.is(FeatureOutcome::Unknown, "not asked after the failure before it")
}

/// The parts of the reply, if it calls a tool.
fn call_of(heard: Option<CheckAnswer>) -> Option<Vec<ReplyPart>> {
    let end = heard?.reply.ok()?;
    let has_calls = end.calls().next().is_some();
    has_calls.then_some(end.parts)
}

/// True if a request with a schema differs from one without.
fn sends_schema(model: &dyn ChatModel) -> bool {
    let (items, schema) = (questions::ask_structured(), questions::answer_schema());
    let without = ModelRequest::from_items(&items, SESSION);
    model.preview(without) != model.preview(ModelRequest { schema: Some(&schema), ..without })
}
