//! Definitions of tools as chat completions write them.

use std::borrow::Cow;

use serde::Serialize;

use super::super::asked::OutgoingRequest;
use super::super::functions::FunctionTool;
use super::super::strict::allows_strict;
use super::flags::ChatFlags;
use super::schema::simplify_schema;
use crate::model::ToolDefinition;

#[derive(Serialize)]
pub(super) struct ChatTool<'a> {
    r#type: &'static str,
    function: FunctionTool<'a>,
}

/// The tools of a request.
pub(super) fn write_tools<'a>(asked: &OutgoingRequest<'a>, flags: &ChatFlags) -> Vec<ChatTool<'a>> {
    let may_be_strict = asked.settings.strict_tools && flags.strict;
    let write_tool = |tool: &'a ToolDefinition| {
        let strict = (may_be_strict && allows_strict(&tool.parameters)).then_some(true);
        let mut function = FunctionTool::new(tool, strict);
        if flags.plain_schemas {
            function.parameters = Cow::Owned(simplify_schema(&function.parameters));
        }
        ChatTool { r#type: "function", function }
    };
    asked.tools.iter().map(write_tool).collect()
}
