//! One turn, and what the person does meanwhile: stops it, or looks at the output of the last call.

use std::convert::Infallible;

use tokio::sync::mpsc;

use super::at_hand::AtHand;
use super::chat_session::Chat;
use super::interrupts::Interrupts;
use super::lines::MessageLines;
use super::{foreground, look, tell_person};
use crate::agent::exit::Ending;
use crate::agent::{Cancel, RunEnd};
use crate::base::text;
use crate::screen::Outlets;

/// Takes one turn. Ctrl-C stops it. Returns `None` if a second Ctrl-C arrives meanwhile.
pub(super) async fn take_turn(
    chat: &mut Chat,
    message: Option<String>,
    interrupts: &mut Interrupts,
    beside: &mut Beside<'_>,
) -> Option<Result<RunEnd, Ending>> {
    interrupts.forget();
    let (at_hand, heard, cancel) = (chat.at_hand.clone(), chat.heard.clone(), chat.cancel());
    let open = tokio::sync::Mutex::new(());
    let taking = async {
        let ended = tokio::select! {
            biased;
            never = cancel_at_interrupt(interrupts, &cancel) => match never {},
            ended = chat.turn(message) => ended,
        };
        // A pager that is open is read to its end.
        drop(open.lock().await);
        ended
    };
    let ended = tokio::select! {
        biased;
        ended = taking => ended,
        never = beside.serve(&open, &at_hand, &heard) => match never {},
    };
    (!(cancel.is_triggered() && interrupts.forget())).then_some(ended)
}

/// Stops the running turn at the first Ctrl-C.
async fn cancel_at_interrupt(interrupts: &mut Interrupts, cancel: &Cancel) -> Infallible {
    interrupts.next().await;
    cancel.trigger();
    std::future::pending().await
}

/// The actions of the user during a turn.
pub(super) struct Beside<'l> {
    pub lines: &'l MessageLines,
    pub outlets: Outlets,
    /// Requests for the full output of the last call.
    pub looks: mpsc::UnboundedReceiver<()>,
}

impl Beside<'_> {
    /// Shows the full output of the last call whenever it is asked for, and holds `open` meanwhile.
    async fn serve(
        &mut self,
        open: &tokio::sync::Mutex<()>,
        at_hand: &AtHand,
        heard: &look::CallFollower,
    ) -> Infallible {
        self.forget();
        loop {
            if self.looks.recv().await.is_none() {
                return std::future::pending().await;
            }
            let _open = open.lock().await;
            let Some(content) = heard.look() else {
                tell_person(
                    &mut self.outlets,
                    "Nothing was run since this chat began; /last shows what ran before.",
                );
                continue;
            };
            let lent = self.lines.lend(&self.outlets).await;
            let unseen = foreground::run_pager(at_hand, text::make_visible(&content).into_owned()).await;
            drop(lent);
            tell_person(&mut self.outlets, &unseen.unwrap_or_default());
            self.forget();
        }
    }

    /// Drops what was asked for while nothing could be shown.
    fn forget(&mut self) {
        while self.looks.try_recv().is_ok() {}
    }
}
