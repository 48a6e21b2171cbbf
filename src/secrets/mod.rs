//! Redaction: what is secret, by its name or by its shape, and how it is kept out of all output.

mod secret;
mod shapes;
mod redact;
mod redacting;

pub use redact::{Redactor, mask_line, user_info};
pub use redacting::Redacting;
pub use secret::{Secret, looks_secret};
