//! Chat templates: lists of messages whose texts are templates, filled with variables.
//!
//! ```
//! use agent::facade::prompt::chat::{ChatMessage, ChatTemplate, FillOptions, placeholder, system, user};
//! use agent::facade::template::{self, Syntax};
//! use serde_json::json;
//!
//! let template = ChatTemplate::from_messages(Syntax::Jinja, [
//!     system("You are {{ role }}."),
//!     placeholder("history", true),
//!     user("Please {{ task }}."),
//! ])?;
//! let vars = template::convert_value(&json!({
//!     "role": "a painter",
//!     "task": "paint a tree",
//!     "history": [{ "role": "user", "content": "Hello!" }, { "role": "assistant", "content": "Good day." }],
//! }));
//! let messages = template.format(&vars, &FillOptions::default())?;
//! assert_eq!(messages[0], ChatMessage::system("You are a painter."));
//! assert_eq!(messages[2], ChatMessage::assistant("Good day."));
//! assert_eq!(messages.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Variables are data: a value that contains template marks is passed through unchanged. One error names the missing
//! variables of all messages.

/// The page about chat templates, whose examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/chat-templates.md")]
struct TemplatePage;

mod message;
mod written;
mod error;
mod entry;
mod options;
mod chat_template;
mod items;

pub use chat_template::ChatTemplate;
pub use entry::{MessageTemplate, assistant, calling, parts, placeholder, system, tool, user};
pub use error::{ChatError, MessageProblem};
pub use items::{convert_messages, split_system};
pub use message::{ChatMessage, ChatPart, ChatRole};
pub use options::FillOptions;
