//! Whoever watches a run: the terminal, JSONL, one JSON object.
