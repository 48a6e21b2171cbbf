//! The errand of a helper: an agent with a separate conversation and run, within the run that called it.

use std::io;
use std::sync::Arc;

use crate::agent::{Agent, Cancel, Conversation, Emitter, Run, RunEnd, RunInput, exit, run_input};
use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind};
use crate::conversation::message::UserText;
use crate::tools::Superior;

/// An errand. Dropping it in the middle of its turn stops everything and leaves a complete session.
pub(super) struct Errand {
    pub agent: Agent,
    pub conversation: Conversation,
    pub run: Run,
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
        conversation: Conversation,
        superior: Arc<dyn Superior>,
        run_id: String,
    ) -> Self {
        let sink = Relay { name: name.to_owned(), superior: Arc::clone(&superior) };
        let emitter = Emitter::new(conversation.session.id().to_owned(), run_id, Box::new(sink));
        // It spends from the limits of the run that called it.
        let run = Run { ledger: superior.ledger(), superior: Some(superior), ..Run::new(emitter) };
        Self { agent, conversation, run }
    }

    /// Does the job.
    ///
    /// # Errors
    /// It did not begin.
    pub(super) async fn work(&mut self, prompt: String) -> Result<RunEnd, exit::Ending> {
        let input = RunInput { said: Some(UserText::by_person(prompt)), ..RunInput::default() };
        run_input(&self.agent, &mut self.conversation, &mut self.run, input, &Cancel::default()).await
    }
}
