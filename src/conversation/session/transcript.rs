//! The conversation in memory: the view that is sent, and the sums over its entries.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::text;
use crate::conversation::attachment::strip_attachments;
use crate::conversation::event::plan::{PlanAuthor, PlanEvent};
use crate::conversation::event::{CallTelemetry, Compressed};
use crate::conversation::message::{CallAnswer, Cost, Item, Step, Summary, Usage, UserText};
use crate::conversation::telemetry::Tally;

use super::entry::{LogTitle, SystemPrompt};
use super::state::SessionState;
use super::view::{SessionView, ViewEdit};

/// A message of the person in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessagePlace {
    /// The number of the message.
    pub number: u64,
    /// The number of the first item that came with it: the messages of a prompt and notes precede it.
    pub from: u64,
}

/// The title that a message gives to a session.
pub(super) fn make_title(message: &str) -> String {
    const LONGEST: usize = 80;
    text::one_line(message, LONGEST)
}

/// Items and sums.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    /// The current agent.
    pub agent: String,
    pub model: String,
    pub system: Option<SystemPrompt>,
    pub view: SessionView,
    /// The number of the last step whose server counted the request, and that count. `None` once anything that was in
    /// the request has changed.
    pub counted: Option<(u64, u64)>,
    /// The number of the last item.
    pub last: u64,
    /// The person's messages, oldest first, whether they are still sent or not.
    pub messages: Vec<MessagePlace>,
    /// The number of the first item of the turn whose input is coming in.
    opening: Option<u64>,
    /// The undos that may be taken back, each with the title that there was before it.
    pub undos: Vec<String>,
    /// The person's first words; empty until there is a message.
    pub title: String,
    /// The title that a person gave it.
    pub name: Option<String>,
    /// The named places, each with the number of the last item before it.
    pub checkpoints: BTreeMap<String, u64>,
    /// The numbers of the items that no compression touches.
    pub pinned: BTreeSet<u64>,
    /// The same in the order in which they were pinned, those that were pinned together in one.
    pub pins: Vec<Vec<u64>>,
    /// True if a person undid the compressions and wants none until they ask for one.
    pub held: bool,
    pub usage: Usage,
    pub cost: Cost,
    pub turns: u64,
    /// The number of turns that ended with each exit code.
    pub codes: BTreeMap<u8, u64>,
    pub steps: u64,
    pub calls: u64,
    /// The costs of the answered calls, by tool.
    pub costs: Tally,
    pub state: SessionState,
    /// The source of the first outside content, if any.
    pub taint: Option<String>,
    /// The events of the last plan or flow, oldest first.
    pub progress: Vec<PlanEvent>,
}

impl Transcript {
    pub fn new(agent: &str, model: &str) -> Self {
        Self { agent: agent.to_owned(), model: model.to_owned(), ..Self::default() }
    }

    /// Begins a turn: what is said before the first reply is its input.
    pub fn start_turn(&mut self) {
        self.turns += 1;
        self.opening = Some(self.last + 1);
    }

    /// Adds text in the person's place.
    pub fn say(&mut self, said: UserText) {
        self.last += 1;
        self.undos.clear();
        if said.author.is_person() {
            let from = self.opening.unwrap_or(self.last);
            self.messages.pop_if(|before| before.from == from);
            self.messages.push(MessagePlace { number: self.last, from });
            if self.title.is_empty() {
                self.title = make_title(strip_attachments(&said.text));
            }
        }
        self.view.push(self.last, Item::Said(said));
    }

    /// Sets the system prompt, replacing the one before.
    pub fn brief(&mut self, prompt: SystemPrompt) {
        self.counted = None;
        self.system = Some(prompt);
    }

    /// Adds a reply; its calls are open.
    pub fn reply(&mut self, step: Step) {
        self.opening = self.opening.filter(|_| step.given);
        self.steps += u64::from(!step.given);
        self.spend(step.usage, step.cost_usd);
        self.last += 1;
        if step.usage.input_tokens > 0 && !step.usage.estimated {
            self.counted = Some((self.last, step.usage.input_tokens));
        }
        self.view.push(self.last, Item::Step(step));
    }

    /// Fills the slot of a call; returns false if there is none, or it is filled. A call that a prompt brought along
    /// never ran, so that it was not measured, and is not counted.
    pub fn answer(&mut self, number: u64, call: usize, answer: CallAnswer, cost: &CallTelemetry) -> bool {
        let step = self.view.step_mut(number);
        let ran = step.as_ref().is_some_and(|step| !step.given || !cost.execution_id.is_empty());
        let filled = step.is_some_and(|step| step.fill(call, answer));
        if filled && ran {
            self.calls += 1;
            self.costs.add(cost);
        }
        filled
    }

    /// Edits the view after a compression. A summary takes the next number. `kept` receives the hidden items.
    pub fn compress(
        &mut self,
        done: &Compressed,
        edits: &[ViewEdit],
        summary: Option<Summary>,
        kept: impl FnMut(u64, &Item),
    ) {
        self.spend(done.usage, done.cost_usd);
        self.held &= done.is_refusal();
        let summary = summary.map(|summary| {
            self.last += 1;
            (self.last, summary)
        });
        self.edit(edits, summary, kept);
    }

    /// Counts a compression that was undone later: its cost stays, and the number of its summary remains used.
    pub fn pass_over(&mut self, done: &Compressed, has_summary: bool) {
        self.spend(done.usage, done.cost_usd);
        self.counted = None;
        self.last += u64::from(has_summary);
    }

    /// Edits the view.
    pub fn edit(&mut self, edits: &[ViewEdit], summary: Option<(u64, Summary)>, kept: impl FnMut(u64, &Item)) {
        self.counted = None;
        self.view.edit(edits, summary, kept);
    }

    /// Takes item `from` and everything after it out of the conversation. What they cost stays counted.
    pub fn undo(&mut self, from: u64) {
        self.counted = None;
        self.opening = None;
        self.undos.push(self.title.clone());
        self.view.truncate(from);
        self.messages.retain(|message| message.from < from);
        if self.messages.is_empty() {
            self.title.clear();
        }
        self.pinned.retain(|number| *number < from);
        self.forget_pins();
    }

    /// What the session is called.
    pub fn titled(&self) -> LogTitle {
        LogTitle { title: self.title.clone(), name: self.name.clone() }
    }

    /// Sets the title that a person gives; an empty one takes it back.
    pub fn rename(&mut self, name: String) {
        self.name = Some(name).filter(|name| !name.is_empty());
    }

    /// Names the place after item `number`; a name that stands elsewhere moves.
    pub fn mark(&mut self, name: String, number: u64) {
        self.checkpoints.insert(name, number);
    }

    /// Keeps items out of every compression.
    pub fn pin(&mut self, numbers: &[u64]) {
        self.pins.push(numbers.iter().copied().filter(|number| self.pinned.insert(*number)).collect());
        self.forget_pins();
    }

    /// Takes that back.
    pub fn unpin(&mut self, numbers: &[u64]) {
        self.pinned.retain(|number| !numbers.contains(number));
        self.forget_pins();
    }

    /// Forgets the order of what is not pinned any more.
    fn forget_pins(&mut self) {
        self.pins.iter_mut().for_each(|pins| pins.retain(|number| self.pinned.contains(number)));
        self.pins.retain(|pins| !pins.is_empty());
    }

    /// Shows every item again in its original form, and keeps it that way.
    pub fn restore(&mut self, view: SessionView) {
        self.view = view;
        self.hold();
    }

    /// Prevents compressions until a person asks for one.
    pub fn hold(&mut self) {
        self.counted = None;
        self.held = true;
    }

    /// Sets the agent and the model that answer from here on.
    pub fn switch(&mut self, agent: &str, model: &str) {
        self.counted = None;
        agent.clone_into(&mut self.agent);
        model.clone_into(&mut self.model);
    }

    pub fn spend(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.usage += usage;
        self.cost.add(&usage, cost_usd);
    }

    /// Counts a reply beside the conversation.
    pub fn role(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.steps += 1;
        self.spend(usage, cost_usd);
    }

    /// Adds an event of a plan or a flow. A flow replaces what was before it, and so does the first plan of a request
    /// that is no flow's.
    pub fn progress(&mut self, progress: PlanEvent) {
        let is_first = match &progress {
            PlanEvent::Begun { .. } => true,
            PlanEvent::Planned(plan) => plan.revision == 1 && plan.author != PlanAuthor::Flow,
            _ => false,
        };
        if is_first {
            self.progress.clear();
        }
        self.progress.push(progress);
    }

    /// The calls without an answer: the place of the step among the items, and that of the call in it.
    pub fn open_calls(&self) -> impl Iterator<Item = (usize, usize)> {
        let items = &self.view.items;
        let open = |at: usize| {
            let calls = items[at].as_step().into_iter().flat_map(Step::calls).enumerate();
            calls.filter(|(_, call)| call.answer.is_none()).map(move |(call, _)| (at, call))
        };
        (0..items.len()).flat_map(open)
    }
}
