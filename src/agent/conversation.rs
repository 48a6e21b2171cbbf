//! A conversation: the session, and everything else that belongs only to it. `/clear` replaces it, `/model` leaves
//! it as it is, `--continue` replays it from the log.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::agent::window::{Budget, Ruler};
use crate::conversation::Archive;
use crate::conversation::knowledge::{Ledger, Loaded};
use crate::conversation::message::CallAnswer;
use crate::conversation::session::{Session, StateChange};
use crate::conversation::spill::Spill;
use crate::files::history::FileHistory;
use crate::model::CallRecord;
use crate::safety::policy::SessionGrants;
use crate::tools::{LeftOut, recall_text};

use super::Agent;
use super::live_calls::LiveCalls;
use super::request::OpenRequest;
use super::request::beside::BesideRecord;

/// One conversation, whichever agent answers in it.
pub struct Conversation {
    pub session: Session,
    /// The part that tools read and change while they run.
    pub(super) shared: Arc<SharedConversation>,
    /// The permissions that the person granted for the rest of the conversation.
    pub(super) grants: SessionGrants,
    /// Finished calls as data, kept only if a script may read them.
    pub(super) results: Vec<CallRecord>,
    pub(super) ruler: Ruler,
    /// The ruler has taken the size of an earlier request from the log.
    pub(super) is_anchored: bool,
    /// The model, and the most tokens that its server accepts, learned from refusals. Kept for this process only:
    /// the next one tries the declared budget again.
    pub(super) learned: Option<(String, u64)>,
    /// What compressions have taken out of requests so far in this process, in tokens.
    pub(super) compressed_away: u64,
    /// The size of the whole conversation when a summary last failed.
    pub(super) failed_summary: Option<u64>,
    /// The model, and the tokens of a request and its reply together that its server states as its limit.
    pub(super) stated_limit: Option<(String, u64)>,
    /// The price tier of its requests.
    pub(super) priced: Option<PricedRequests>,
    /// The window that the server reports has been taken into account.
    pub(super) heeded_server: bool,
    /// The person was warned that the server cuts the conversation silently.
    pub(super) warned_of_cut: bool,
    /// The clock of its prompts.
    pub(super) clock: Timestamp,
    /// The calls that have begun and have no answer yet.
    pub(super) live: Arc<LiveCalls>,
    /// The running request, if any.
    pub(super) asking: Option<OpenRequest>,
    /// What requests beside it took, until its session records it.
    pub(super) beside: Arc<BesideRecord>,
    /// The beginning of the last request, as far as the provider has it in its cache.
    pub(super) cached: Option<CachedPrefix>,
}

/// The beginning of a request that a provider has said to be in its cache.
#[derive(Debug, Clone)]
pub(super) struct CachedPrefix {
    /// The provider's name for the model.
    pub model: String,
    pub tokens: u64,
    pub at: Instant,
}

/// The price tier that a conversation has reached with a model.
#[derive(Debug, Clone)]
pub(super) struct PricedRequests {
    /// The provider's name for the model.
    pub model: String,
    /// The tokens above which the tier begins; 0 for the base prices.
    pub above: u64,
    /// That of the last request, which a person knows.
    pub told: u64,
}

/// The part of a conversation that its calls share while they run.
pub struct SharedConversation {
    /// The skills whose instructions the model has.
    pub skills: Loaded,
    /// The files that were seen.
    pub files: Arc<Ledger>,
    /// Texts that were cut out of results.
    pub spill: Arc<Spill>,
    /// The items that are no longer sent.
    pub archive: Arc<dyn Archive>,
    /// What its calls changed in the workspace. `None` if nothing is kept, or if it is a helper's: what that changes is
    /// in the history of the conversation that called it.
    pub history: Option<Arc<FileHistory>>,
}

impl Conversation {
    /// Continues a session as its log left it, or begins with a new one.
    pub fn new(session: Session, now: Timestamp) -> Self {
        let day = |time: Timestamp| time.to_zoned(TimeZone::system()).date();
        let state = session.state();
        let log = session.path().filter(|_| session.parent().is_none());
        let history = log.map(|log| Arc::new(FileHistory::new(session.find_root(), log, false)));
        let shared = SharedConversation {
            history,
            files: Arc::new(Ledger::restore(&state.files)),
            skills: Loaded::restore(&state.skills),
            spill: Arc::new(Spill::open(session.path())),
            archive: session.archive(),
        };
        Self {
            shared: Arc::new(shared),
            grants: SessionGrants::default(),
            results: Vec::new(),
            ruler: Ruler::default(),
            is_anchored: false,
            learned: None,
            compressed_away: 0,
            failed_summary: None,
            stated_limit: None,
            priced: None,
            heeded_server: false,
            warned_of_cut: false,
            live: Arc::default(),
            asking: None,
            beside: Arc::default(),
            cached: None,
            clock: if day(session.started_at()) == day(now) { session.started_at() } else { now },
            session,
        }
    }

    /// The skills whose instructions the model has.
    pub fn skills(&self) -> &Loaded {
        &self.shared.skills
    }

    /// What its calls changed in the workspace, if it is kept.
    pub fn file_history(&self) -> Option<&Arc<FileHistory>> {
        self.shared.history.as_ref()
    }

    /// The parts cut from results, to be read while a turn runs.
    pub fn left_out(&self) -> Arc<Spill> {
        Arc::clone(&self.shared.spill)
    }

    /// The whole text of an answer, including the part that was cut, if it is still kept.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn whole_text(&self, answer: &CallAnswer) -> io::Result<String> {
        let kept = answer.spill_id.as_deref().and_then(|id| self.shared.spill.whole(id));
        kept.unwrap_or_else(|| Ok(answer.content.clone()))
    }

    /// Returns what the `recall` tool finds: the text of an id, else the lines that contain the words.
    ///
    /// # Errors
    /// A sentence for the person.
    pub fn recall(&self, id_or_words: &str) -> Result<String, String> {
        recall_text(id_or_words, LeftOut { spill: &self.shared.spill, archive: self.shared.archive.as_ref() })
    }

    /// The leading tokens of a request that are known to be cached, if its first `unchanged` ones are those of the last
    /// request. Providers keep them for five minutes at least.
    pub(super) fn cached_tokens(&self, model: &str, unchanged: u64) -> u64 {
        const KEPT: Duration = Duration::from_mins(4);
        let known = self.cached.as_ref().filter(|cached| cached.model == model && cached.at.elapsed() < KEPT);
        known.map_or(0, |cached| cached.tokens.min(unchanged))
    }

    /// The tokens that a request may hold, lowered by the server's refusals.
    pub(super) fn budget(&self, agent: &Agent) -> Budget {
        let info = agent.model.info();
        let above = self.priced.as_ref().filter(|priced| priced.model == info.id).map_or(0, |priced| priced.above);
        let budget = agent.budget.stop_below_tier(info, &agent.context, above);
        let learned = self.learned.as_ref().filter(|(model, _)| *model == agent.model.info().id);
        budget.at_most(learned.map(|(_, tokens)| *tokens))
    }

    /// Records the files and skills that became known since the last call.
    pub(super) fn note_knowledge(&mut self, now: Timestamp) {
        let (files, skills) = (self.shared.files.take_news(), self.shared.skills.take_news());
        self.session.update_state(StateChange { files, skills, ..StateChange::default() }, now);
    }
}
