//! Callbacks that receive the variables of a template, and the result or the error of filling it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::template::Value;

use super::entry::MessageTemplate;
use super::error::ChatError;
use super::message::ChatMessage;

/// A template is about to be filled.
#[derive(Debug)]
pub struct Started<'a> {
    /// The variables, default values included.
    pub variables: &'a Value,
    pub templates: &'a [MessageTemplate],
    /// [`FillOptions::extra`](super::FillOptions::extra)
    pub extra: &'a Map<String, Json>,
}

/// A template was filled.
#[derive(Debug)]
pub struct TemplateFilled<'a> {
    pub result: &'a [ChatMessage],
    pub templates: &'a [MessageTemplate],
    pub extra: &'a Map<String, Json>,
}

/// A template could not be filled.
#[derive(Debug)]
pub struct TemplateFailed<'a> {
    pub error: &'a ChatError,
    pub templates: &'a [MessageTemplate],
    pub extra: &'a Map<String, Json>,
}

type OnStart = dyn Fn(&Started<'_>) + Send + Sync;
type OnEnd = dyn Fn(&TemplateFilled<'_>) + Send + Sync;
type OnError = dyn Fn(&TemplateFailed<'_>) + Send + Sync;

/// Functions that are called in the order in which they were added.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use agent::facade::prompt::chat::{Callbacks, ChatTemplate, FillOptions, user};
/// use agent::facade::template::{self, Syntax};
/// use serde_json::json;
///
/// let made = Arc::new(AtomicUsize::new(0));
/// let count = Arc::clone(&made);
/// let counting = Callbacks::default().on_end(move |end| {
///     count.fetch_add(end.result.len(), Ordering::Relaxed);
/// });
/// let loud = Callbacks::default().on_start(|start| assert_eq!(start.templates.len(), 1));
/// let options = FillOptions { callbacks: counting.and(loud), ..FillOptions::default() };
/// ChatTemplate::from_messages(Syntax::Jinja, [user("Hello {{ name }}")])?
///     .format(&template::convert_value(&json!({ "name": "Ada" })), &options)?;
/// assert_eq!(made.load(Ordering::Relaxed), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Callbacks {
    pub(super) start: Vec<Arc<OnStart>>,
    pub(super) end: Vec<Arc<OnEnd>>,
    pub(super) error: Vec<Arc<OnError>>,
}

impl Callbacks {
    /// Adds a function that is called before a template is filled.
    pub fn on_start(mut self, call: impl Fn(&Started<'_>) + Send + Sync + 'static) -> Self {
        self.start.push(Arc::new(call));
        self
    }

    /// Adds a function that is called with the messages that a template gave.
    pub fn on_end(mut self, call: impl Fn(&TemplateFilled<'_>) + Send + Sync + 'static) -> Self {
        self.end.push(Arc::new(call));
        self
    }

    /// Adds a function that is called with the error when a template cannot be filled.
    pub fn on_error(mut self, call: impl Fn(&TemplateFailed<'_>) + Send + Sync + 'static) -> Self {
        self.error.push(Arc::new(call));
        self
    }

    /// Adds `others` after these.
    pub fn and(mut self, others: Self) -> Self {
        self.start.extend(others.start);
        self.end.extend(others.end);
        self.error.extend(others.error);
        self
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end, error) = (self.start.len(), self.end.len(), self.error.len());
        write!(f, "Callbacks({start} on_start, {end} on_end, {error} on_error)")
    }
}
