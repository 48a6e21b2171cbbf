//! Requests, from the items of a conversation to the bytes that are sent, and streams that break off.

mod conversations;
mod make;
mod requests;
mod streams;
pub mod valid;
