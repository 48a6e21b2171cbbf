//! The environment of commands. It is made when the first of them starts: a run without commands needs none, and the
//! search for secrets in every value takes longer than the rest of the startup.

use std::sync::{Arc, LazyLock};

type MakeVariables = Box<dyn FnOnce() -> Vec<(String, String)> + Send>;

/// All variables of commands, in the order of their names.
#[derive(Clone)]
pub struct Environment(Arc<LazyLock<Vec<(String, String)>, MakeVariables>>);

impl Environment {
    /// The result of `make`, which is called at most once.
    pub fn lazily(make: impl FnOnce() -> Vec<(String, String)> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// Names and values.
    pub fn variables(&self) -> &[(String, String)] {
        &self.0
    }
}

impl From<Vec<(String, String)>> for Environment {
    fn from(variables: Vec<(String, String)>) -> Self {
        Self::lazily(|| variables)
    }
}
