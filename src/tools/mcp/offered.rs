//! The names of what a server offers to people, as far as somebody asked for them.

use std::sync::{Arc, Mutex, MutexGuard};

/// What a person can take from a server, by name, each with a few words about it.
#[derive(Debug, Default)]
pub struct ServerOffers {
    /// By their addresses.
    pub resources: Vec<(String, String)>,
    /// With their arguments.
    pub prompts: Vec<(String, String)>,
}

/// The names of a server.
#[derive(Default)]
pub(super) struct OfferedNames(Mutex<AskedOffers>);

#[derive(Default)]
struct AskedOffers {
    is_asked: bool,
    listed: Option<Arc<ServerOffers>>,
}

impl OfferedNames {
    /// True if nobody has asked yet.
    pub fn begin(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_asked, true)
    }

    /// Keeps what the server lists; without it, the next one who asks tries again.
    pub fn keep(&self, listed: Option<ServerOffers>) {
        *self.lock() = AskedOffers { is_asked: listed.is_some(), listed: listed.map(Arc::new) };
    }

    pub fn get(&self) -> Option<Arc<ServerOffers>> {
        self.lock().listed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, AskedOffers> {
        self.0.lock().expect("no holder of the names panics")
    }
}
