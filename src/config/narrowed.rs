//! What a project takes of the tools and skills of an agent: fewer than the person's lists take in.

/// Lists of names and globs, as those of the agent: each of them has to take a name in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowed {
    pub tools: Vec<Vec<String>>,
    pub skills: Vec<Vec<String>>,
}
