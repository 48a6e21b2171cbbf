//! Definitions of tools as chat completions write them.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::super::strict::allows_strict;
use super::schema;
use crate::model::ToolDefinition;

pub(super) struct Tools<'a> {
    pub definitions: &'a [ToolDefinition],
    /// True if tools are declared strict when their schemas allow it.
    pub strict: bool,
    /// True if schemas contain only what Gemini reads.
    pub plain: bool,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tools = serializer.serialize_seq(Some(self.definitions.len()))?;
        for tool in self.definitions {
            let strict = self.strict && allows_strict(&tool.parameters);
            tools.serialize_element(&Tool(Definition { tool, strict, plain: self.plain }))?;
        }
        tools.end()
    }
}

struct Tool<'a>(Definition<'a>);

struct Definition<'a> {
    tool: &'a ToolDefinition,
    strict: bool,
    plain: bool,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tool = serializer.serialize_map(None)?;
        tool.serialize_entry("type", "function")?;
        tool.serialize_entry("function", &self.0)?;
        tool.end()
    }
}

impl Serialize for Definition<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut function = serializer.serialize_map(None)?;
        let parameters = &*self.tool.parameters;
        let parameters =
            if self.plain { Cow::Owned(schema::simplify_schema(parameters)) } else { Cow::Borrowed(parameters) };
        function.serialize_entry("name", &self.tool.name)?;
        function.serialize_entry("description", &self.tool.description)?;
        function.serialize_entry("parameters", &parameters)?;
        if self.strict {
            function.serialize_entry("strict", &true)?;
        }
        function.end()
    }
}
