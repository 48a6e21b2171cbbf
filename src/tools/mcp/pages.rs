//! Lists that a server gives in pages.

use std::collections::BTreeSet;

use rmcp::model::PaginatedRequestParams;
use rmcp::service::ServiceError;

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
