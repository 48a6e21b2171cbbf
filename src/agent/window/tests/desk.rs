//! A conversation under a budget, for tests: its items are kept in a session in memory, and each compression is
//! applied to it as the loop does.

use std::path::Path;

use jiff::Timestamp;

use crate::agent::window::{
    Budget, CompressionPlan, Goal, Material, MeasuredRequest, RequestSize, Ruler, SummaryFacts, compose_summary,
    in_code, plan_compression, result_cap,
};
use crate::config::{ContextSettings, GuidanceProfile, RetryConfig, Strategy};
use crate::conversation::event::{CallTelemetry, Compressed, CompressionReason};
use crate::conversation::message::{
    Call, CallAnswer, CallStatus, ReplyPart, Step, Summary, ToolCall, Usage, UserText,
};
use crate::conversation::session::{About, Session};
use crate::model::{ModelInfo, PictureLimits, WindowSource};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub struct Desk {
    pub session: Session,
    pub ruler: Ruler,
    pub way: Strategy,
    pub settings: ContextSettings,
    pub budget: Budget,
    pub system: String,
}

/// A model with a window of so many tokens, of which nothing else is known.
pub fn model(context_window: u64) -> ModelInfo {
    ModelInfo {
        name: "m".to_owned(),
        id: "m".to_owned(),
        provider: String::new(),
        context_window,
        window_source: WindowSource::Declared,
        max_input_tokens: None,
        max_output_tokens: None,
        largest_output: None,
        thinking_budget: None,
        prices: None,
        ends: None,
        calls_tools: true,
        sees: false,
        pictures: PictureLimits::default(),
        reads_documents: false,
        profile: GuidanceProfile::Concise,
        retry: RetryConfig::default(),
        scripted: true,
        configured: true,
    }
}

/// The settings that come with the program.
pub fn settings() -> ContextSettings {
    let settings = serde_json::json!({
        "budget": null, "compress_at": 0.8, "compress_to": 0.5, "keep_recent": 0.2, "strategy": "staged",
        "layers": { "system": 0.5, "context": 0.6, "input": 0.8, "reminders": 0.2 },
        "reserve_output": null, "tool_result_max_tokens": 8000,
    });
    serde_json::from_value(settings).expect("settings")
}

/// The budget of a window with the default division.
pub fn budget(window: u64) -> Budget {
    let reserve = 8192.min(window / 4);
    let tokens = window - reserve - window / 50;
    Budget { window, reserve, tokens, declared: tokens, whole: tokens }
}

/// Text of this many tokens, in lines.
pub fn text(tokens: u64) -> String {
    // What a token of these lines has, in ninths of a byte.
    let bytes = usize::try_from(tokens).expect("small") * 32 / 9;
    let mut out = String::with_capacity(bytes + 64);
    for line in 0_usize.. {
        if out.len() >= bytes {
            break;
        }
        out += if line % 40 == 39 { "error: line " } else { "one more line " };
        out += &line.to_string();
        out += " of what a tool had to tell of this\n";
    }
    out.truncate(bytes);
    out
}

/// A step of calls: their names, their arguments, and the tokens of their results.
pub fn step(words: &str, calls: &[(&str, String)]) -> Step {
    let call = |(at, (name, arguments)): (usize, &(&str, String))| {
        let request = ToolCall { id: format!("c{at}"), name: (*name).to_owned(), arguments: arguments.clone() };
        ReplyPart::Call(Call { request, opaque: None, answer: None })
    };
    let mut parts = vec![ReplyPart::Text { text: words.to_owned(), opaque: None }];
    parts.extend(calls.iter().enumerate().map(call));
    Step { parts, ..Step::default() }
}

/// A result in the form that a model reads.
pub fn result(tool: &str, tokens: u64, status: CallStatus) -> CallAnswer {
    let content = format!("<result tool=\"{tool}\" untrusted>\n{}\n</result>", text(tokens.saturating_sub(12)));
    CallAnswer::of_text(content, status)
}

impl Desk {
    pub fn new(way: Strategy, budget: Budget, fixed: u64) -> Self {
        let about =
            About { workspace: Path::new("/w"), copy: None, is_layer: false, agent: "default", model: "m" };
        let (session, ruler) = (Session::ephemeral(about, NOW), Ruler::default());
        Self { session, ruler, way, settings: settings(), budget, system: text(fixed) }
    }

    pub fn say(&mut self, said: UserText) {
        self.session.say(said, NOW).expect("in memory");
    }

    pub fn step(&mut self, step: Step, answers: Vec<CallAnswer>) {
        let number = self.session.reply(step, NOW).expect("in memory");
        for (call, answer) in answers.into_iter().enumerate() {
            let telemetry = CallTelemetry::default();
            self.session.answer((number, call), answer, telemetry, NOW).expect("in memory");
        }
    }

    /// Adds a call of `read_file` whose result has this many tokens.
    pub fn read(&mut self, path: &str, tokens: u64) {
        let fixed = self.measure_fixed();
        let cap = result_cap(&self.budget, fixed, self.settings.tool_result_max_tokens, 1);
        let calls = [("read_file", serde_json::json!({ "path": path }).to_string())];
        let answer = result("read_file", tokens.min(cap as u64), CallStatus::Ok);
        self.step(step("I look at the next file.", &calls), vec![answer]);
    }

    /// The size of the next request.
    pub fn measure(&mut self) -> RequestSize {
        let (items, ids) = (self.session.items(), self.session.ids());
        self.ruler.measure(
            MeasuredRequest { model: "gpt-5-mini", tools: &[], system: &self.system, items, ids },
            u64::MAX,
        )
    }

    fn measure_fixed(&mut self) -> u64 {
        if self.ruler.measure_fixed() == 0 {
            self.measure();
        }
        self.ruler.measure_fixed()
    }

    pub fn goal(&self) -> Goal {
        let kept = self.with_material(|material| material.measure_kept());
        Goal::new(&self.settings, &self.budget, kept)
    }

    /// The plan for the last measurement.
    pub fn plan(&self, goal: Goal) -> Option<CompressionPlan> {
        self.with_material(|material| plan_compression(self.way, material, goal))
    }

    pub fn with_material<T>(&self, then: impl FnOnce(Material<'_>) -> T) -> T {
        then(Material {
            items: self.session.items(),
            ids: self.session.ids(),
            weights: &self.ruler.weights(),
            fixed: self.ruler.measure_fixed(),
            pinned: self.session.list_pinned(),
            ruler: &self.ruler,
        })
    }

    /// Carries a plan out. `written` writes the parts of a summary; if it is `None`, code writes them.
    pub fn carry_out(&mut self, plan: &CompressionPlan, written: Option<&dyn Fn(&SummaryFacts) -> String>) {
        let facts = self.with_material(|material| SummaryFacts::collect(material, plan, None));
        let summary: Option<Summary> = (!plan.removed.is_empty()).then(|| {
            let body = written.map_or_else(|| in_code(&facts), |write| write(&facts));
            compose_summary(&facts, &body)
        });
        self.session.compress(&done(), &plan.edits, summary, NOW).expect("in memory");
    }
}

fn done() -> Compressed {
    Compressed {
        reason: CompressionReason::Threshold,
        strategy: String::new(),
        tokens_before: 0,
        tokens_after: 0,
        budget: 0,
        masked: 0,
        summarized: 0,
        unloaded: 0,
        usage: Usage::default(),
        cost_usd: None,
    }
}
