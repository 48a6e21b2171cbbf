//! The measurements of a run: each request as it would be sent, the part of it that a provider's cache would hold,
//! and the facts that the model still sees.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use agent::facade::base::tokens;
use agent::facade::conversation::Archive;
use agent::facade::conversation::message::{Item, Origin, ReplyPart};
use agent::facade::conversation::spill::Spill;
use agent::facade::model::ModelRequest;
use agent::facade::model::chat;
use agent::facade::model::history::{self, CallIds, HistoryRules, Pictures};
use agent::facade::model::{OutgoingRequest, RequestSettings};

use crate::workload::{Fact, Kind};

/// The rule by which a provider's cache recognises a part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The longest common prefix with the request before.
    LongestPrefix,
    /// The longest common prefix from 1,024 tokens on, in steps of 128.
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

/// The facts that the model still had, right after a compression.
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

pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[derive(Default)]
pub struct Figures {
    pub requests: u64,
    /// Tokens of the system prompt and of the definitions of the tools.
    pub fixed: u64,
    /// Tokens of the largest request.
    pub peak: u64,
    pub sent: u64,
    /// The cost of the sent tokens under each rule, in tenths of a full-price token: a cached token costs one
    /// tenth.
    tenths: [u64; RULES.len()],
    /// Shares of the previous request that the next one begins with, by bytes.
    kept: Vec<f64>,
    pub compressions: u64,
    pub summaries: u64,
    pub checks: Vec<Check>,
    pub recalls: u64,
    pub repeats: u64,
    /// Facts that were to be known by now, and whether the model could: a result may have been cut before them.
    known: Vec<Option<bool>>,
    /// Tokens of texts that were counted before.
    counted: HashMap<u64, u64>,
    /// The parts of the request before, and its bytes.
    parts: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

impl Figures {
    /// Takes in a request. Returns its tokens, and how many of them the longest prefix rule finds in the cache.
    pub fn request(&mut self, request: ModelRequest<'_>) -> (u64, u64) {
        let bytes = body(&request);
        // The two brackets behind the last item close what the next request goes on with.
        let before = self.bytes.len().saturating_sub(2);
        if before > 0 {
            let same = self.bytes[..before].iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            self.kept.push(share(same as u64, before as u64));
        }
        let schemas: Vec<String> = request.tools.iter().map(|tool| tool.parameters.to_string()).collect();
        let told = request.tools.iter().flat_map(|tool| [tool.name.as_str(), tool.description.as_str()]);
        let tools: Vec<&str> = told.chain(schemas.iter().map(String::as_str)).collect();
        let mut parts = vec![self.part(&tools), self.part(&[request.system])];
        parts.extend(request.items.iter().flat_map(messages).map(|texts| self.part(&texts)));
        parts.extend(request.aside.map(|aside| self.part(&[aside])));
        let total: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
        let shared: u64 = parts.iter().zip(&self.parts).take_while(|(a, b)| a == b).map(|(part, _)| part.1).sum();
        let previous: u64 = self.parts.iter().map(|(_, tokens)| tokens).sum();
        for (tenths, rule) in self.tenths.iter_mut().zip(RULES) {
            let cached = if self.requests == 0 { 0 } else { rule.cached(shared, previous) };
            *tenths += (total - cached) * 10 + cached;
        }
        self.fixed = parts[..2].iter().map(|(_, tokens)| tokens).sum::<u64>().max(self.fixed);
        self.requests += 1;
        self.peak = self.peak.max(total);
        self.sent += total;
        (self.bytes, self.parts) = (bytes, parts);
        (total, shared)
    }

    /// The cost of all requests under a rule, in full-price tokens.
    pub fn cost(&self, rule: Rule) -> u64 {
        let at = RULES.iter().position(|of| *of == rule).expect("one of the rules");
        self.tenths[at] / 10
    }

    /// The mean share of a request that the next one keeps, by bytes.
    pub fn kept(&self) -> f64 {
        self.kept.iter().sum::<f64>() / self.kept.len().max(1) as f64
    }

    /// Requests except those for summaries.
    pub fn steps(&self) -> u64 {
        self.requests - self.summaries
    }

    /// Takes in which facts the model has come to know with step `taken`.
    pub fn learn(&mut self, items: &[Item], facts: &[Fact], taken: usize, kept: &Kept) {
        self.known.resize(facts.len(), None);
        let mut archived = None;
        for (fact, known) in facts.iter().zip(&mut self.known) {
            if fact.known_after <= taken && known.is_none() {
                let found =
                    holds(items, &fact.text) || archived.get_or_insert_with(|| kept.text()).contains(&fact.text);
                *known = Some(found);
            }
        }
    }

    /// True if the model has come to know a fact.
    pub fn knows(&self, fact: usize) -> bool {
        self.known.get(fact) == Some(&Some(true))
    }

    /// Looks for all facts that the model has come to know: in the items that are sent, then in what `recall` reads,
    /// which is what is not sent any more and what was cut out of results.
    pub fn check(&mut self, items: &[Item], facts: &[Fact], kept: &Kept) {
        let kept = kept.text();
        let mut check = Check::default();
        for (_, fact) in facts.iter().enumerate().filter(|(at, _)| self.knows(*at)) {
            let held = holds(items, &fact.text);
            match check.kinds.iter_mut().find(|(kind, ..)| *kind == fact.kind) {
                Some((_, said, verbatim)) => {
                    *said += 1;
                    *verbatim += u64::from(held);
                }
                None => check.kinds.push((fact.kind, 1, u64::from(held))),
            }
            check.lost += u64::from(!held && !kept.contains(&fact.text));
        }
        self.checks.push(check);
    }

    /// A part of a request: what it is, and its tokens.
    fn part(&mut self, texts: &[&str]) -> (u64, u64) {
        const FRAME: u64 = 4;
        let mut hasher = DefaultHasher::new();
        texts.hash(&mut hasher);
        let hash = hasher.finish();
        let count = || FRAME + texts.iter().map(|text| tokens::count_tokens(text)).sum::<u64>();
        (hash, *self.counted.entry(hash).or_insert_with(count))
    }
}

/// The texts that `recall` searches.
#[derive(Clone, Default)]
pub struct Kept {
    pub archive: Option<Arc<dyn Archive>>,
    /// Known once a command ran.
    pub spill: Option<Arc<Spill>>,
}

impl Kept {
    /// Every line that a query can find.
    fn text(&self) -> String {
        let spilled = self.spill.iter().flat_map(|spill| {
            let read = |id: &String| std::fs::read_to_string(spill.path(id).expect("it is kept"));
            let texts = spill.ids().iter().map(read).collect::<Result<Vec<_>, _>>();
            texts.expect("what was kept can be read")
        });
        let found = |archive: &Arc<dyn Archive>| archive.search("", usize::MAX).expect("it is in memory");
        let archived = self.archive.iter().flat_map(found).flat_map(|found| found.rows).map(|row| row.text);
        spilled.chain(archived).fold(String::new(), |all, text| all + &text + "\n")
    }
}

/// True if an item says it, in its text or in what it calls.
pub fn holds(items: &[Item], text: &str) -> bool {
    items.iter().any(|item| item.texts().any(|part| part.contains(text)))
}

/// The messages that an item is sent as: a step is its reply, and an answer for each call.
fn messages(item: &Item) -> Vec<Vec<&str>> {
    let Item::Step(step) = item else { return vec![item.texts().collect()] };
    let reply = step.parts.iter().flat_map(|part| match part {
        ReplyPart::Text { text, .. } => vec![text.as_str()],
        ReplyPart::Reasoning { .. } => Vec::new(),
        ReplyPart::Call(call) => vec![call.request.name.as_str(), call.request.arguments.as_str()],
    });
    let answers = step.calls().filter_map(|call| Some((call, call.answer.as_ref()?)));
    let answers = answers.map(|(call, answer)| vec![call.request.id.as_str(), answer.content.as_str()]);
    std::iter::once(reply.collect()).chain(answers).collect()
}

/// A request as a server of chat completions gets it, without the fields around the conversation.
fn body(request: &ModelRequest<'_>) -> Vec<u8> {
    let origin = Origin { wire: "chat".to_owned(), host: String::new(), model: String::new() };
    let rules = HistoryRules {
        documents: true,
        origin: &origin,
        ids: CallIds::default(),
        pictures: Pictures::Notes,
        user_after_results: true,
    };
    let turns = history::write_turns(request, &rules);
    let settings = RequestSettings::default();
    let asked = OutgoingRequest {
        settings: &settings,
        system: request.system,
        turns: &turns,
        tools: request.tools,
        tool_choice: agent::facade::model::ToolChoice::Auto,
        schema: None,
        session_id: "",
    };
    chat::encode_request(&asked, &chat::ChatFlags::default())
}
