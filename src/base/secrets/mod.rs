//! Redaction: recognises secrets by their names or shapes, and keeps them out of all output.

mod secret;
mod ordinary;
mod address;
mod shapes;
mod redact;
mod redacting;

pub use address::{password_in, secrets_in, user_info, without_credentials};
pub use redact::{LateSecrets, MASK, Redactor, mask_line};
pub use redacting::Redacting;
pub use secret::{Secret, looks_secret};
