//! `recall`: reads what was cut off from an earlier result, by the id in its notice, or finds it by search.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, bytes_for, definition};
use crate::contract::{CallContext, Permission, Tool, ToolDefinition};
use crate::output::{ToolError, ToolOutput};
use crate::spill::Spill;
use crate::text;

/// Lines of a page where no limit is given.
const PAGE: usize = 400;
/// Hits of a search where no limit is given.
const HITS: usize = 40;

pub struct Recall {
    definition: ToolDefinition,
    spill: Arc<Spill>,
}

#[derive(Deserialize)]
struct Arguments {
    id: Option<String>,
    query: Option<String>,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl Recall {
    #[must_use]
    pub fn new(spill: Arc<Spill>) -> Self {
        let definition = definition(
            "recall",
            "Reads what an earlier result left out. Give the id in its notice, or a plain query to find lines in all of them.",
            (Permission::Read, &[]),
            json!({
                "id": { "type": "string", "description": "r1" },
                "query": { "type": "string" },
                "offset": { "type": "integer" },
                "limit": { "type": "integer" },
            }),
            &[],
        );
        Self { definition, spill }
    }

    fn page(&self, id: &str, arguments: &Arguments, most: usize) -> Result<ToolOutput, ToolError> {
        let first = arguments.offset.unwrap_or(1).max(1);
        let limit = arguments.limit.unwrap_or(PAGE).max(1);
        let page = self.spill.read(id, first, limit, most).map_err(|error| self.refused(id, &error))?;
        let mut observation = page.text.trim_end_matches('\n').to_owned();
        if page.count == 0 {
            observation = format!("{id} has fewer than {first} lines.");
        } else if page.more {
            let next = page.first + page.count;
            let _ = write!(observation, "\n[more follows: offset={next}]");
        }
        Ok(ToolOutput {
            result: json!({ "id": id, "first_line": page.first, "lines": page.count, "more": page.more, "text": page.text }),
            observation,
            summary: format!("{} lines of {id}", page.count),
            truncated: page.more,
            ..ToolOutput::default()
        })
    }

    fn search(&self, query: &str, limit: usize, most: usize) -> Result<ToolOutput, ToolError> {
        let hits = self.spill.search(query, limit).map_err(|error| ToolError::permanent(error.to_string()))?;
        let mut observation = String::new();
        for hit in &hits {
            let line = format!("{}:{}: {}\n", hit.id, hit.line, text::head(&hit.text, 500));
            if observation.len() + line.len() > most {
                break;
            }
            observation += &line;
        }
        if hits.is_empty() {
            observation = format!("Nothing that was left out contains `{}`.", text::one_line(query, 80));
        } else if hits.len() == limit {
            observation += "[there may be more: narrow the query or raise limit]";
        }
        let found: Vec<Value> =
            hits.iter().map(|hit| json!({ "id": hit.id, "line": hit.line, "text": hit.text })).collect();
        Ok(ToolOutput {
            result: json!({ "hits": found }),
            observation: observation.trim_end().to_owned(),
            summary: format!("{} hits", hits.len()),
            truncated: hits.len() == limit,
            ..ToolOutput::default()
        })
    }

    fn refused(&self, id: &str, error: &io::Error) -> ToolError {
        if error.kind() != io::ErrorKind::NotFound {
            return ToolError::permanent(format!("{id} cannot be read: {error}"));
        }
        let known = match self.spill.ids() {
            ids if ids.is_empty() => "nothing was left out yet".to_owned(),
            ids => format!("the ids are {}", ids.join(", ")),
        };
        ToolError::parameter(format!("There is no `{}`: {known}.", text::one_line(id, 40)))
    }
}

impl Tool for Recall {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn subject(&self, arguments: &Value) -> String {
        let named = |key: &str| arguments[key].as_str().map(str::to_owned);
        named("id").or_else(|| named("query")).unwrap_or_default()
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: Arguments = arguments(given)?;
            let most = bytes_for(context.max_tokens);
            match (&arguments.id, &arguments.query) {
                (Some(id), _) => self.page(id, &arguments, most),
                (None, Some(query)) => self.search(query, arguments.limit.unwrap_or(HITS).max(1), most),
                (None, None) => Err(ToolError::parameter("Give the id of a notice, or a query.")),
            }
        })
    }
}
