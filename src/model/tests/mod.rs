//! The wires together: what servers send, what is sent to them, and what is valid on each wire.

mod server;
mod cases;
mod mutations;
mod conversations;
mod requests;
mod matrix;
mod demo;
mod refusals;
