//! Lists that a server gives in pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, Tool};
use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::Value;

use super::client::McpConnection;
use super::refusals::{WANTS_LOGIN, word_refusal};

/// The way through the pages of a list.
#[derive(Default)]
pub(super) struct PageWalk {
    /// What its entries are called.
    what: &'static str,
    most: usize,
    cursor: Option<String>,
    seen: BTreeSet<String>,
}

impl PageWalk {
    pub fn of(what: &'static str, most: usize) -> Self {
        Self { what, most, ..Self::default() }
    }

    pub fn request(&self) -> PaginatedRequestParams {
        PaginatedRequestParams::default().with_cursor(self.cursor.clone())
    }

    /// Goes on with the next page, after `taken` entries in all; false if there is none.
    ///
    /// # Errors
    /// The list is too long, or has no end: the end of a sentence about the server.
    pub fn advance(&mut self, taken: usize, next: Option<String>) -> Result<bool, String> {
        if taken > self.most {
            return Err(format!("has more than {} {}", self.most, self.what));
        }
        if next.as_ref().is_some_and(|next| !self.seen.insert(next.clone())) {
            return Err(format!("lists its {} in a circle", self.what));
        }
        self.cursor = next;
        Ok(self.cursor.is_some())
    }

    /// The end of a sentence about a server that does not give a page.
    pub fn refuse(&self, error: &ServiceError) -> String {
        if error.is_authorization_required() {
            return WANTS_LOGIN.to_owned();
        }
        format!("does not list its {}: {}", self.what, word_refusal(error))
    }
}

impl McpConnection {
    /// Every tool of the server, each as the protocol writes it; a wrong definition as it came.
    ///
    /// # Errors
    /// The end of a sentence about the server.
    pub async fn list_tools(&self, most: usize) -> Result<Vec<Arc<Value>>, String> {
        let (mut walk, mut tools) = (PageWalk::of("tools", most), Vec::new());
        loop {
            let asked = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(walk.request()));
            let page = self.service.send_request(asked).await.map_err(|error| walk.refuse(&error))?;
            // To the library, a page with one wrong definition is no list of tools: the others are taken all the same.
            let mut page = serde_json::to_value(page).unwrap_or_default();
            let Value::Array(listed) = page["tools"].take() else {
                return Err(walk.refuse(&ServiceError::UnexpectedResponse));
            };
            let write = |raw| Tool::deserialize(&raw).and_then(serde_json::to_value).unwrap_or(raw);
            tools.extend(listed.into_iter().map(write).map(Arc::new));
            if !walk.advance(tools.len(), page["nextCursor"].as_str().map(str::to_owned))? {
                return Ok(tools);
            }
        }
    }
}
