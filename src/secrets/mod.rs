//! Redaction: what is secret, by its name or by its shape, and how it is kept out of all output.

mod secret;
mod ordinary;
mod address;
mod shapes;
mod redact;
mod redacting;

pub use address::{password_in, secrets_in, user_info};
pub use ordinary::is_ordinary;
pub use redact::{Redactor, mask_line};
pub use redacting::Redacting;
pub use secret::{Secret, looks_secret};
