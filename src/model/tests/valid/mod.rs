//! The rules of each wire for a request, as strict servers hold to them.

pub mod chat;
pub mod responses;
pub mod anthropic;
