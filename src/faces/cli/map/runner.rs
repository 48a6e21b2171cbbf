//! Where tasks run: here, or on the workers of a queue.

use crate::agent::Cancel;
use crate::agent::assembly::{MapOutcome, MapRunner, MapTask, SetupError};

use super::super::warn_person;
#[cfg(feature = "scale")]
use super::queued::QueuedRunner;

/// The tasks at a time, where they run here.
const USUAL_JOBS: usize = 8;
/// The tasks at a time that wait for workers.
#[cfg(feature = "scale")]
const QUEUED_JOBS: usize = 2048;

/// What carries out tasks.
pub enum TaskRunner {
    Here(MapRunner),
    #[cfg(feature = "scale")]
    Queue(QueuedRunner),
}

impl TaskRunner {
    /// Carries out one task.
    ///
    /// # Errors
    /// It could not be begun.
    #[cfg_attr(not(feature = "scale"), expect(unused_variables, reason = "the id is for the queue"))]
    pub async fn run(&self, id: &str, task: MapTask) -> Result<MapOutcome, SetupError> {
        match self {
            Self::Here(runner) => runner.run(task).await,
            #[cfg(feature = "scale")]
            Self::Queue(queued) => queued.run(id, task).await,
        }
    }

    /// Stops every task.
    pub fn cancel(&self) -> &Cancel {
        match self {
            Self::Here(runner) => &runner.cancel,
            #[cfg(feature = "scale")]
            Self::Queue(queued) => &queued.cancel,
        }
    }

    /// What the preparation warned of.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Here(runner) => &runner.warnings,
            #[cfg(feature = "scale")]
            Self::Queue(_) => &[],
        }
    }

    /// What a person is told of where tasks run, if it is not here.
    pub fn describe_place(&self) -> Option<&'static str> {
        match self {
            Self::Here(_) => None,
            #[cfg(feature = "scale")]
            Self::Queue(_) => Some("Tasks run on the workers of the queue; what they may do is said there."),
        }
    }

    pub fn usual_jobs(&self) -> usize {
        match self {
            Self::Here(_) => USUAL_JOBS,
            #[cfg(feature = "scale")]
            Self::Queue(_) => QUEUED_JOBS,
        }
    }

    /// Returns once a first request was answered, so that the common beginning of the others is cached.
    pub async fn first_answer(&self) {
        match self {
            Self::Here(runner) => runner.first_answer().await,
            #[cfg(feature = "scale")]
            Self::Queue(_) => {}
        }
    }

    /// Does what killed runs and these tasks left to be done, and tells the person.
    pub async fn finish_left_work(&self) {
        match self {
            Self::Here(runner) => runner.finish_left_work().await.iter().for_each(|line| warn_person(line)),
            #[cfg(feature = "scale")]
            Self::Queue(_) => {}
        }
    }

    /// The number of tasks whose request waits for the server's limit.
    pub fn count_waiting(&self) -> usize {
        match self {
            Self::Here(runner) => runner.count_waiting(),
            #[cfg(feature = "scale")]
            Self::Queue(_) => 0,
        }
    }

    /// True if all tasks together have spent what they may.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Here(runner) => runner.is_exhausted(),
            #[cfg(feature = "scale")]
            Self::Queue(_) => false,
        }
    }
}
