//! Work that a call leaves when it is dropped, or that an earlier process left: it is done before and after a turn, and
//! told to the person.

use std::sync::Mutex;

use futures_util::future::BoxFuture;

/// One piece of work. It gives a line for the person, if there is something to tell.
pub type LeftWork = BoxFuture<'static, Option<String>>;

/// Work that waits to be done. An agent shares it with its helpers.
#[derive(Default)]
pub struct UnfinishedWork(Mutex<Vec<LeftWork>>);

impl UnfinishedWork {
    pub fn push(&self, work: LeftWork) {
        self.0.lock().expect("pushing never panics").push(work);
    }

    /// Does all of it. Returns the lines for the person.
    pub async fn finish(&self) -> Vec<String> {
        let left = std::mem::take(&mut *self.0.lock().expect("pushing never panics"));
        let mut told = Vec::new();
        for work in left {
            told.extend(work.await);
        }
        told
    }
}
