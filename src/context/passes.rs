//! Several compressions of one conversation, one after another, with more said in between: carried out in a session,
//! as the loop does it.

use std::path::Path;

use jiff::Timestamp;
use proptest::prelude::*;

use super::cases::{Talk, goal, parted, talks, ways};
use super::plan::{Fate, Goal, Material, Plan, plan};
use super::ruler::{Request, Ruler};
use super::{Record, Room, in_code, message, note};
use crate::config::Strategy as Way;
use crate::event::{Compressed, CompressionReason};
use crate::message::{Message, Usage};
use crate::session::{About, EditReason, Session};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

struct Desk {
    session: Session,
    ruler: Ruler,
    way: Way,
}

impl Desk {
    fn new(way: Way) -> Self {
        let about = About { workspace: Path::new("/w"), agent: "default", model: "m" };
        Self { session: Session::ephemeral(about, NOW), ruler: Ruler::default(), way }
    }

    fn say(&mut self, talk: &Talk) {
        let before = self.session.ids().last().map_or(0, |id| id.number);
        for message in talk.messages.iter().skip(usize::from(before > 0)) {
            self.session.record(message.clone(), NOW).expect("in memory");
        }
        let pinned: Vec<u64> = talk.pinned.iter().map(|number| before + number).collect();
        self.session.pin(&pinned, NOW);
    }

    /// The tokens of the next request.
    fn measure(&mut self) -> u64 {
        let (messages, ids) = (self.session.messages(), self.session.ids());
        self.ruler.measure(Request { model: "m", tools: &[], messages, ids }, u64::MAX).tokens
    }

    fn plan(&mut self, goal: Goal) -> Plan {
        self.measure();
        self.with_material(|material| plan(self.way, material, goal))
    }

    fn with_material<T>(&self, then: impl FnOnce(Material<'_>) -> T) -> T {
        let said = self.session.hidden().filter(|(_, message)| message.is_from_person());
        then(Material {
            messages: self.session.messages(),
            ids: self.session.ids(),
            weights: &self.ruler.weights(),
            fixed: 0,
            pinned: self.session.pinned(),
            quoted: said.map(|(_, message)| self.ruler.weigh(message.content())).sum(),
            ruler: &self.ruler,
        })
    }

    fn carry_out(&mut self, plan: &Plan, goal: Goal) {
        let gone: Vec<&Message> = plan.removed().map(|index| &self.session.messages()[index]).collect();
        let standing = match self.way {
            _ if gone.is_empty() => None,
            Way::Window | Way::Selective => Some(note(gone.len(), Some("r1"))),
            Way::Staged | Way::Summary => {
                let room = Room::of(goal.to);
                let record = Record { gone, asked: None, plan: None, recall: Some("r1"), room };
                Some(message(&record, &in_code(&record)))
            }
        };
        let edits = self.with_material(|material| plan.edits(material, &|_| Some("r1".to_owned()), standing));
        self.session.edit(&EditReason::Compressed(done()), edits, NOW).expect("in memory");
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Pass upon pass, a call keeps its answer, nothing said is lost, and what must stay stays. A pass lands
    /// where it was planned to, give or take a summary made in code; at its goal nothing is left to do, and another one
    /// makes it larger by a summary at most.
    #[test]
    fn passes_one_after_another_hold_what_one_holds(
        rounds in proptest::collection::vec((talks(), 1200..8000_u64), 1..4),
        way in ways(),
    ) {
        let mut desk = Desk::new(way);
        let mut said = Vec::new();
        for (talk, to) in rounds {
            let goal = goal(to);
            desk.say(&talk);
            said.extend(talk.messages.iter().skip(1).cloned());
            let plan = desk.plan(goal);
            desk.carry_out(&plan, goal);
            prop_assert_eq!(parted(desk.session.messages()), None);
            prop_assert!(desk.session.said().eq(&said), "what was said is kept beside what is sent");
            let last = said.iter().rfind(|message| message.is_from_person()).expect("somebody spoke");
            prop_assert!(desk.session.messages().contains(last), "the person's last words stand");

            let size = desk.measure();
            let Room { summary, quoted } = Room::of(to);
            let planned = plan.tokens.max(goal.to) + summary;
            prop_assert!(size <= planned, "{size} tokens, planned {}", plan.tokens);
            let again = desk.plan(goal);
            if size <= goal.to {
                prop_assert!(again.fates.iter().all(|fate| *fate == Fate::Keep), "{again:?}");
            }
            let allowed = size + summary + quoted;
            prop_assert!(again.tokens <= allowed, "{size} tokens would become {}", again.tokens);
        }
    }
}
