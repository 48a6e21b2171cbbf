//! The loop: ask the model, run its calls, answer them, again, until an answer stands.
