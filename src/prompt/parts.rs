//! The parts of a prompt taken together: the files that it is composed of, and the values that all of them fence.

use super::file::Prompt;
use super::{untrusted, variables};
use crate::template::Value;

impl Prompt {
    /// Its path below a directory of prompts.
    pub(super) fn path(&self) -> Option<String> {
        let kind = self.origin.rsplit('.').next().filter(|kind| *kind == "txt").unwrap_or("md");
        self.version.map(|version| format!("{}/{version}.{kind}", self.name))
    }

    /// Every file that it is composed of, by its path below a directory of prompts.
    pub(super) fn files(&self) -> Vec<(String, &str)> {
        let parts = std::iter::once(self).chain(self.modules().map(|(_, module)| module.as_ref()));
        let part_files = parts.flat_map(|part| {
            let own = part.path().map(|path| (path, part.text()));
            let examples =
                part.examples.as_deref().map(|text| (format!("{}/{}", part.name, part.head.examples), text));
            let included = part.included.iter().map(|(name, text)| (name.clone(), text.as_str()));
            own.into_iter().chain(examples).chain(included)
        });
        part_files.collect()
    }

    /// The context with what its head declares; values from outside cannot close the marks around them.
    pub(super) fn declare(&self, context: &Value) -> Value {
        let declared = variables::with_declared(context, &self.head);
        let modules = || self.modules().map(|(_, module)| module);
        let heads = std::iter::once(&self.head).chain(modules().map(|module| &module.head));
        let names: Vec<&str> = heads.flat_map(|head| &head.untrusted).map(String::as_str).collect();
        if names.is_empty() {
            return declared;
        }
        let sources: Vec<&str> = self.sources().into_iter().chain(modules().map(|module| module.body())).collect();
        untrusted::fence_values(declared, &names, &sources)
    }
}
