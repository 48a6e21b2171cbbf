//! The errand of a helper: an agent with a separate conversation and run, within the run that called it.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::{
    Agent, Cancel, Conversation, Emitter, Input, Run, Stop, TurnEnd, brief, exit, settle, take_turn,
};
use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind};
use crate::conversation::message::Said;
use crate::tools::Superior;

/// An errand. Dropping it in the middle of its turn stops everything and leaves a complete session.
pub(super) struct Errand {
    pub agent: Agent,
    pub conversation: Conversation,
    pub run: Run,
    in_turn: bool,
}

/// Passes events on to the run of the caller, under the name of the helper.
struct Relay {
    name: String,
    superior: Arc<dyn Superior>,
}

impl EventSink for Relay {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        let mut event = event.clone();
        event.path.insert(0, self.name.clone());
        if let EventKind::RequestFinished(request) = &mut event.kind {
            request.helper = Some(event.path.join(" › "));
        }
        self.superior.relay(event);
        Ok(())
    }
}

impl Errand {
    pub(super) fn new(
        name: &str,
        agent: Agent,
        mut conversation: Conversation,
        superior: Arc<dyn Superior>,
        run_id: String,
    ) -> Self {
        if let Some(source) = superior.taint() {
            conversation.session.mark_tainted(source, Timestamp::now());
        }
        let sink = Relay { name: name.to_owned(), superior: Arc::clone(&superior) };
        let emitter = Emitter::new(conversation.session.id().to_owned(), run_id, Box::new(sink));
        Self { agent, conversation, run: Run::within(superior, emitter), in_turn: false }
    }

    /// Does the job. Returns the end of its turn.
    pub(super) async fn work(&mut self, prompt: String) -> TurnEnd {
        let (agent, conversation, run) = (&self.agent, &mut self.conversation, &mut self.run);
        self.in_turn = true;
        let briefed = brief(agent, conversation, run)
            .and_then(|notes| Ok((notes, agent.opening(conversation, &run.emitter.run_id())?)));
        let end = match briefed {
            Ok((notes, opening)) => {
                run.emitter.warn(notes);
                let input = Input { opening, said: Said::by_person(prompt) };
                take_turn(agent, conversation, run, input, &Cancel::default()).await
            }
            Err(error) => TurnEnd { stop: Stop::Failed(error), answer: String::new() },
        };
        self.finish(&end.stop);
        end
    }

    /// Ends the turn in its session.
    fn finish(&mut self, stop: &Stop) {
        self.in_turn = false;
        self.run.emitter.warn(self.agent.end_background());
        let ending = exit::ending(stop, self.run.totals.unasked, None);
        let reason = self.agent.redactor.redact(&ending.reason);
        if let Err(error) = self.conversation.session.end_turn(&reason, ending.code, Timestamp::now()) {
            self.run.emitter.warn([format!("the session of a helper is not kept on disk: {error}")]);
        }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if self.in_turn {
            let settled = settle(&self.agent, &mut self.conversation, &mut self.run, &Stop::Interrupted);
            self.finish(&settled.err().unwrap_or(Stop::Interrupted));
        }
    }
}
