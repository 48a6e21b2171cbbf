//! Measures the time and the memory that it takes to keep the context small.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::facade::agent::window::{MeasuredRequest, Ruler};
use agent::facade::agent::{Cancel, Emitter, Run, measure_fill, run_compression};
use agent::facade::base::tokens;
use agent::facade::config::Strategy;
use agent::facade::conversation::EventSink;
use agent::facade::conversation::event::{CallTelemetry, Event};
use agent::facade::conversation::message::{
    Call, CallAnswer, CallStatus, FinishReason, Item, ReplyPart, Step, ToolCall, UserText,
};
use agent::facade::conversation::session::Session;
use jiff::Timestamp;

use crate::figures::share;
use crate::model::Play;
use crate::stage::{self, Setting};
use crate::workload::{Sizes, Workload, code};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// Adds messages to a conversation of 200,000 tokens and decides after each whether to compress. Returns the median
/// and the worst time of one; `near` the threshold the new message is counted exactly.
pub fn append_and_decide(near: bool) -> (Duration, Duration) {
    const APPENDED: usize = 200;
    const TOKENS: u64 = 200_000;
    let dir = tempfile::tempdir().expect("a directory");
    let play = Play::new(Workload::new(1, Sizes::Lognormal));
    let agent = stage::agent(dir.path(), &play, Setting::budget(Strategy::Staged, 10 * TOKENS));
    let mut session = stage::conversation(dir.path()).session;
    let mut rng = fastrand::Rng::with_seed(1);
    grow(&mut session, &mut rng, TOKENS);
    let mut ruler = Ruler::default();
    let mut measure = |session: &Session, threshold: u64, report: bool| {
        let (tools, items, ids) = (agent.tools.definitions(), session.items(), session.ids());
        let request = MeasuredRequest { model: "gpt-5-mini", tools, system: "", items, ids };
        let size = ruler.measure(request, threshold);
        if report {
            ruler.report(size.tokens);
        }
        size.tokens
    };
    let mut tokens = measure(&session, 0, true);
    let mut times: Vec<Duration> = (0..APPENDED)
        .map(|number| {
            let (reply, answer) = step(&mut rng, number, 800);
            let number = session.reply(reply, NOW).expect("in memory");
            let begun = Instant::now();
            session.answer((number, 0), answer, CallTelemetry::default(), NOW).expect("in memory");
            let threshold = if near { tokens + 1000 } else { 10 * TOKENS };
            let is_over = measure(&session, threshold, false) > threshold;
            let took = begun.elapsed();
            std::hint::black_box(is_over);
            tokens = measure(&session, threshold, true);
            took
        })
        .collect();
    times.sort_unstable();
    (times[APPENDED / 2], times[APPENDED - 1])
}

/// The memory use of conversations, each in a separate process.
pub fn memory() -> Vec<Memory> {
    let program = std::env::current_exe().expect("this program");
    let measured = [50_u64, 100, 200, 400].into_iter().map(|thousands| {
        let output = Command::new(&program).args(["memory", &thousands.to_string()]).output().expect("it runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let mut numbers = printed.split_whitespace().map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some(Memory { thousands, text: next()?, held: next()?, compressed: next()? })
    });
    measured.flatten().collect()
}

/// A conversation in memory, in bytes.
pub struct Memory {
    pub thousands: u64,
    pub text: u64,
    /// The growth of the process: by the conversation and the measurements of its size.
    pub held: u64,
    /// The same once it was compressed, with what was said and what is sent instead.
    pub compressed: u64,
}

impl Memory {
    /// The memory that a conversation takes beyond a smaller one, as a multiple of the additional text.
    pub fn factor_since(&self, smaller: &Self) -> f64 {
        let more = |of: fn(&Self) -> u64| of(self).saturating_sub(of(smaller));
        share(more(|m| m.held).max(more(|m| m.compressed)), more(|m| m.text))
    }
}

/// The child: builds one conversation, compresses it, and prints what it took.
pub fn measure_memory(thousands: u64) {
    let dir = tempfile::tempdir().expect("a directory");
    let play = Play::new(Workload::new(1, Sizes::Lognormal));
    let agent = stage::agent(dir.path(), &play, Setting::budget(Strategy::Staged, thousands * 1250));
    let _ = tokens::count_tokens("the tables are loaded");
    let mut conversation = stage::conversation(dir.path());
    conversation.session.say(UserText::by_person("Mend the reader."), NOW).expect("in memory");
    let mut run = Run::new(Emitter::new("session".to_owned(), "run".to_owned(), Box::new(Unseen)));
    let Some(before) = resident() else { return };
    grow(&mut conversation.session, &mut fastrand::Rng::with_seed(1), thousands * 1000);
    let text: usize = conversation.session.items().iter().flat_map(Item::texts).map(str::len).sum();
    let _ = measure_fill(&agent, &mut conversation, &mut run);
    let held = resident().unwrap_or_default().saturating_sub(before);
    let done =
        stage::runtime().block_on(run_compression(&agent, &mut conversation, &mut run, "", &Cancel::default()));
    assert!(matches!(done, Ok(Some(_))), "there is something to gain");
    let compressed = resident().unwrap_or_default().saturating_sub(before);
    crate::say(&format!("{text} {held} {compressed}"));
    drop((conversation, run, Arc::clone(&play)));
}

/// The memory of this process that is in use, in bytes; `None` if the system does not report it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Steps of 800 tokens each.
fn grow(session: &mut Session, rng: &mut fastrand::Rng, tokens: u64) {
    let steps = usize::try_from(tokens / 800).expect("small");
    for number in 0..steps {
        let (reply, answer) = step(rng, number, 800);
        let number = session.reply(reply, NOW).expect("in memory");
        session.answer((number, 0), answer, CallTelemetry::default(), NOW).expect("in memory");
    }
}

/// A reply and the answer to its call.
fn step(rng: &mut fastrand::Rng, number: usize, tokens: usize) -> (Step, CallAnswer) {
    let arguments = format!("{{\"path\":\"src/file_{number}.rs\"}}");
    let request = ToolCall { id: format!("call_{number}"), name: "read_file".to_owned(), arguments };
    let mut reply = Step::of_text("I read on.", FinishReason::ToolCalls);
    reply.parts.push(ReplyPart::Call(Call { request, opaque: None, answer: None }));
    let mut content = format!("<result tool=\"read_file\" untrusted>\n{}</result>", code(rng, tokens));
    // The spare capacity of a text that grew is not measured.
    content.shrink_to_fit();
    (reply, CallAnswer::of_text(content, CallStatus::Ok))
}

struct Unseen;

impl EventSink for Unseen {
    fn emit(&mut self, _event: &Event) -> std::io::Result<()> {
        Ok(())
    }
}
