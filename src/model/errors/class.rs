//! The classes of failures: how the program continues, and what a person can do about each.

use crate::model::ModelErrorKind;

/// A kind of failure, by what a person can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureClass {
    /// The key is missing, wrong or lacks permission.
    Authentication,
    RateLimit,
    /// A limit that waiting for a retry does not lift: money, a plan, a day.
    Quota,
    Overloaded,
    Server,
    /// The request is longer than the window.
    Overflow,
    /// The server does not know the model.
    Model,
    /// Nothing is served at this address.
    Address,
    /// The model cannot call tools, or its server cannot read calls.
    Tools,
    /// The model is served by another interface.
    Wire,
    /// A filter refused the request or ended the reply.
    Filter,
    /// The provider's rules forbid the request.
    Refused,
    /// The model wrote a call that the server could not read.
    Call,
    /// The request is wrong in another way.
    Request,
}

impl FailureClass {
    /// The kind that decides how the program continues.
    pub fn kind(self) -> ModelErrorKind {
        match self {
            Self::Authentication => ModelErrorKind::Authentication,
            Self::RateLimit => ModelErrorKind::RateLimit,
            Self::Quota => ModelErrorKind::Quota,
            Self::Overloaded | Self::Server => ModelErrorKind::Transient,
            Self::Overflow => ModelErrorKind::ContextTooLong,
            Self::Call => ModelErrorKind::Incomplete,
            Self::Model
            | Self::Address
            | Self::Tools
            | Self::Wire
            | Self::Filter
            | Self::Refused
            | Self::Request => ModelErrorKind::BadRequest,
        }
    }

    /// The server's words between their meaning and the advice, which add no numbers to them.
    pub fn words(self, said: &str, model: &str) -> String {
        let said = if said.is_empty() { "the server gave no reason" } else { said };
        let before = match self {
            Self::Model => format!("the server has no model `{model}`: "),
            Self::Filter => "a content filter of the provider refused this: ".to_owned(),
            Self::Refused => "the provider's rules forbid this request: ".to_owned(),
            _ => String::new(),
        };
        let advice = self.advice();
        if advice.is_empty() {
            return format!("{before}{said}");
        }
        let end = if said.ends_with(['.', '!', '?']) { "" } else { "." };
        format!("{before}{said}{end} {advice}")
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Authentication => {
                "Check the key (`api_key` in the model file, or its variable) and whether it may use this model."
            }
            Self::Quota => "Check the plan and the balance of the account, or use another model (-m).",
            Self::Overloaded => "Try again later, or use another model (-m).",
            Self::Model => "`agent model list` shows the known names; `model` in the model file sets it.",
            Self::Address => {
                "Check `base_url` in the model file: most end with `/v1`, none with `/chat/completions`."
            }
            Self::Tools => {
                "Set `capabilities: { tools: false }` in the model file, or use a model that can call tools (-m)."
            }
            Self::Wire => "Set `wire: responses` in the model file.",
            Self::Filter | Self::Refused => "Put the request in other words, or use another model (-m).",
            Self::RateLimit | Self::Server | Self::Overflow | Self::Call | Self::Request => "",
        }
    }
}
