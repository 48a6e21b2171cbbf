//! The one path of a call: `ToolCall` → `PreparedCall` → `CallOutcome` → its answer in the conversation.
//!
//! A call is prepared (arguments read and checked, judged by the policy), scheduled (beside others or alone), permitted,
//! executed, shaped for the model, and settled: counted, recorded, told. The calls of a reply, of a plan, of a flow and
//! of a person all take it. Whatever a tool does, the outcome is a value for the model, never an error that ends the
//! turn, except for a guarantee that is unavailable.

mod end;
mod superior;
mod measure;
mod arguments;
mod prepare;
mod permission;
mod execute;
mod followed;
mod schedule;
mod shape;
mod settle;
mod given;
mod hooked;
mod hooks;
mod unsaved;
mod by_hand;

pub use by_hand::{CalledByHand, call_by_hand};
pub use end::{CallEnd, CallFailure};
pub(super) use given::{GivenCall, GivenOutcome};
pub(super) use prepare::CallLane;
pub(super) use schedule::{CallScheduler, OutcomeOrder, WorkOutcome};
