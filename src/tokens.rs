//! How many tokens a text has: an estimate that costs nothing, and the exact count behind the one door to the tokenizer.
