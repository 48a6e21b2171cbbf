//! What is measured of a run: each request as it would be sent, what of it a provider's cache would hold, and which
//! facts the model still sees.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use agent::contract::Request;
use agent::llm::request::Body;
use agent::message::Message;
use agent::spill::Spill;
use agent::tokens::{self, Encoding};
use serde_json::Map;

use crate::workload::{Fact, Kind};

/// How a provider's cache decides what of a request it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Whatever the request shares with the one before, from its beginning.
    LongestPrefix,
    /// The same from 1,024 tokens on, in steps of 128.
    Steps,
    /// Nothing, unless the whole request before is the beginning of this one.
    Boundary,
}

pub const RULES: [Rule; 3] = [Rule::LongestPrefix, Rule::Steps, Rule::Boundary];

impl Rule {
    fn cached(self, shared: u64, previous: u64) -> u64 {
        match self {
            Self::LongestPrefix => shared,
            Self::Steps if shared >= 1024 => shared / 128 * 128,
            Self::Boundary if shared == previous => shared,
            Self::Steps | Self::Boundary => 0,
        }
    }
}

/// What the model still had, right after a compression.
#[derive(Debug, Clone, Default)]
pub struct Check {
    /// Facts that were said so far, by kind, and how many of them the next request holds verbatim.
    pub kinds: Vec<(Kind, u64, u64)>,
    /// Facts that neither the request holds nor a line that `recall` finds.
    pub lost: u64,
}

impl Check {
    /// The share of the facts of some kinds that the request holds verbatim.
    pub fn verbatim(&self, of: impl Fn(Kind) -> bool) -> f64 {
        let chosen: Vec<_> = self.kinds.iter().filter(|(kind, ..)| of(*kind)).collect();
        share(chosen.iter().map(|(.., held)| held).sum(), chosen.iter().map(|(_, said, _)| said).sum())
    }

    pub fn reachable(&self) -> f64 {
        let said: u64 = self.kinds.iter().map(|(_, said, _)| said).sum();
        share(said - self.lost, said)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[derive(Default)]
pub struct Figures {
    pub requests: u64,
    /// Tokens of the largest request.
    pub peak: u64,
    pub sent: u64,
    /// What each rule makes of the tokens sent, in tenths of a full-price token: one from the cache costs one tenth.
    tenths: [u64; RULES.len()],
    /// Shares of the previous request that the next one begins with, by bytes.
    kept: Vec<f64>,
    pub compressions: u64,
    pub summaries: u64,
    pub checks: Vec<Check>,
    pub recalls: u64,
    pub repeats: u64,
    /// Tokens of texts that were counted before.
    counted: HashMap<u64, u64>,
    /// The parts of the request before, and its bytes.
    parts: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

impl Figures {
    /// Takes in a request. Returns its tokens, and how many of them the longest prefix rule finds in the cache.
    pub fn request(&mut self, request: Request<'_>) -> (u64, u64) {
        let extra = Map::new();
        let body = Body {
            head: Map::new(),
            tools: request.tools,
            strict: false,
            messages: request.messages,
            vision: false,
            breakpoints: false,
            tail: Map::new(),
            extra: &extra,
        };
        let bytes = body.to_vec();
        // The two brackets behind the last message close what the next request goes on with.
        let before = self.bytes.len().saturating_sub(2);
        if before > 0 {
            let same = self.bytes[..before].iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            self.kept.push(share(same as u64, before as u64));
        }
        let schemas: Vec<String> = request.tools.iter().map(|tool| tool.parameters.to_string()).collect();
        let told = request.tools.iter().flat_map(|tool| [tool.name.as_str(), tool.description.as_str()]);
        let tools: Vec<&str> = told.chain(schemas.iter().map(String::as_str)).collect();
        let mut parts = vec![self.part(&tools)];
        parts.extend(request.messages.iter().map(|message| self.part(&texts(message))));
        let total: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
        let shared: u64 = parts.iter().zip(&self.parts).take_while(|(a, b)| a == b).map(|(part, _)| part.1).sum();
        let previous: u64 = self.parts.iter().map(|(_, tokens)| tokens).sum();
        for (tenths, rule) in self.tenths.iter_mut().zip(RULES) {
            let cached = if self.requests == 0 { 0 } else { rule.cached(shared, previous) };
            *tenths += (total - cached) * 10 + cached;
        }
        self.requests += 1;
        self.peak = self.peak.max(total);
        self.sent += total;
        (self.bytes, self.parts) = (bytes, parts);
        (total, shared)
    }

    /// What all requests cost under a rule, in full-price tokens.
    pub fn cost(&self, rule: Rule) -> u64 {
        let at = RULES.iter().position(|of| *of == rule).expect("one of the rules");
        self.tenths[at] / 10
    }

    /// The mean share of a request that the next one keeps, by bytes.
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
    pub fn kept(&self) -> f64 {
        self.kept.iter().sum::<f64>() / self.kept.len().max(1) as f64
    }

    /// Looks for all facts that were said before step `taken`.
    pub fn check(&mut self, messages: &[Message], facts: &[Fact], taken: usize, spill: &Spill) {
        let spilled: Vec<String> = spill
            .ids()
            .iter()
            .map(|id| spill.read(id, 1, usize::MAX, usize::MAX).expect("what was kept can be read").text)
            .collect();
        let mut check = Check::default();
        for fact in facts.iter().filter(|fact| fact.known_after <= taken) {
            let held = holds(messages, &fact.text);
            match check.kinds.iter_mut().find(|(kind, ..)| *kind == fact.kind) {
                Some((_, said, verbatim)) => {
                    *said += 1;
                    *verbatim += u64::from(held);
                }
                None => check.kinds.push((fact.kind, 1, u64::from(held))),
            }
            let found = held || spilled.iter().any(|text| text.contains(&fact.text));
            check.lost += u64::from(!found);
        }
        self.checks.push(check);
    }

    /// A part of a request: what it is, and its tokens.
    fn part(&mut self, texts: &[&str]) -> (u64, u64) {
        const FRAME: u64 = 4;
        let mut hasher = DefaultHasher::new();
        texts.hash(&mut hasher);
        let hash = hasher.finish();
        let count = || FRAME + texts.iter().map(|text| tokens::count(text, Encoding::O200k)).sum::<u64>();
        (hash, *self.counted.entry(hash).or_insert_with(count))
    }
}

/// Whether a message says it, in its text or in what it calls.
pub fn holds(messages: &[Message], text: &str) -> bool {
    messages.iter().any(|message| texts(message).iter().any(|part| part.contains(text)))
}

fn texts(message: &Message) -> Vec<&str> {
    let mut texts = vec![message.content()];
    match message {
        Message::Assistant(reply) => {
            texts.extend(reply.tool_calls.iter().flat_map(|call| [call.name.as_str(), call.arguments.as_str()]));
        }
        Message::Tool(answer) => texts.push(&answer.call_id),
        Message::System { .. } | Message::User { .. } => {}
    }
    texts
}
