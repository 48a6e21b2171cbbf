//! Runs long work on files outside the loop: signals are handled meanwhile, and the work stops soon after its call is
//! dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::output::{ToolError, ToolOutput};
use crate::conversation::knowledge::Ledger;
use crate::safety::Reach;

use super::{CallContext, ToolFuture, bytes_for, parse_arguments};

/// Tells the work that its call was dropped.
#[derive(Debug, Clone, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// The call was dropped; nobody reads the message then.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.get() { Err(ToolError::permanent("cancelled")) } else { Ok(()) }
    }
}

/// What a call on a separate thread may use.
pub struct AsideContext {
    pub reach: Arc<Reach>,
    pub files: Arc<Ledger>,
    /// The most bytes of the observation.
    pub budget: usize,
    /// As in [`CallContext`].
    pub whole: bool,
    pub abandoned: Abandoned,
}

/// Reads the arguments of a call and makes it on a separate thread.
pub fn call_aside<A: DeserializeOwned + Send + 'static>(
    given: Value,
    context: CallContext<'_>,
    call: fn(&A, &AsideContext) -> Result<ToolOutput, ToolError>,
) -> ToolFuture<'_> {
    let (reach, files) = (Arc::clone(context.reach), Arc::clone(context.files));
    let (budget, whole) = (bytes_for(context.max_tokens), context.whole);
    Box::pin(async move {
        let arguments: A = parse_arguments(given)?;
        run_aside(move |abandoned| {
            call(&arguments, &AsideContext { reach, files, budget, whole, abandoned: abandoned.clone() })
        })
        .await
    })
}

/// Runs `work` on a separate thread.
async fn run_aside<T, W>(work: W) -> Result<T, ToolError>
where
    T: Send + 'static,
    W: FnOnce(&Abandoned) -> Result<T, ToolError> + Send + 'static,
{
    let abandoned = Abandoned::default();
    let _on_drop = SetOnDrop(abandoned.clone());
    match tokio::task::spawn_blocking(move || work(&abandoned)).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::permanent(format!("the tool itself failed: {error}"))),
    }
}

struct SetOnDrop(Abandoned);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_that_nobody_waits_for_is_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (began, has_begun) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        runtime.expect("a runtime can be built").block_on(async {
            let mut call = Box::pin(run_aside(move |abandoned| {
                let _ = began.send(());
                while abandoned.check().is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let _ = ended.send(());
                abandoned.check()
            }));
            while has_begun.try_recv().is_err() {
                assert!(tokio::time::timeout(Duration::from_millis(1), &mut call).await.is_err());
            }
        });
        assert_eq!(has_ended.recv(), Ok(()));
    }

    #[test]
    fn a_panic_is_an_error_for_the_model() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let outcome = runtime.expect("a runtime can be built").block_on(run_aside(|_| -> Result<(), ToolError> {
            panic!("broken");
        }));
        assert!(outcome.is_err_and(|error| error.message.contains("the tool itself failed")));
    }
}
