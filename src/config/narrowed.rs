//! A project's selection of the tools and skills of an agent, which only narrows the user's lists.

/// Lists of names and globs, like those of the agent: each of them must include a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowed {
    pub tools: Vec<Vec<String>>,
    pub skills: Vec<Vec<String>>,
}
