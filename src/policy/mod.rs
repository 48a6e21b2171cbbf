//! What may run without asking: pure judgements over a call and its definition.
