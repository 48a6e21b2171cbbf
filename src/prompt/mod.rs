//! Prompts: versioned templates in files, found by name and label, rendered when the agent runs.
