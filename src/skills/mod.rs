//! Skills: folders with instructions, disclosed step by step.
