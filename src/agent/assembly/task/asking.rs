//! The questions of helpers: one at a time, each with the name of the helper. Meanwhile the clocks of all callers are
//! paused.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use crate::safety::{Approval, Approver, OpenFiles, PlanReview, PlanSheet, Question};
use crate::tools::Superior;

/// The approver of a helper, which asks the person of its caller.
pub(super) struct ThroughCaller {
    pub person: Arc<dyn Approver>,
    /// The name of the helper, such as `explore#2`.
    pub name: String,
    pub superior: Arc<dyn Superior>,
    /// Held by the helper whose question is open.
    pub floor: Arc<Mutex<()>>,
}

/// Pauses the clocks of the callers until it is dropped.
struct CallerPause<'a>(&'a dyn Superior);

impl<'a> CallerPause<'a> {
    fn new(superior: &'a Arc<dyn Superior>) -> Self {
        superior.pause();
        Self(superior.as_ref())
    }
}

impl Drop for CallerPause<'_> {
    fn drop(&mut self) {
        self.0.resume();
    }
}

impl Approver for ThroughCaller {
    fn present(&self) -> bool {
        self.person.present()
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        self.person.open_files()
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let _waiting = CallerPause::new(&self.superior);
            let _floor = self.floor.lock().await;
            let name = question.helper.map(|inner| format!("{} › {inner}", self.name));
            let name = name.unwrap_or_else(|| self.name.clone());
            self.person.approve(Question { helper: Some(&name), ..question }).await
        })
    }

    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let _waiting = CallerPause::new(&self.superior);
            let _floor = self.floor.lock().await;
            self.person.answer(&format!("{} asks: {question}", self.name), choices).await
        })
    }

    fn review_plan<'a>(&'a self, sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        Box::pin(async move {
            let _waiting = CallerPause::new(&self.superior);
            let _floor = self.floor.lock().await;
            self.person.review_plan(sheet).await
        })
    }
}
