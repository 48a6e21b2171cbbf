//! Requests, from turns to the bytes that are sent.

mod requests;
pub mod valid;
