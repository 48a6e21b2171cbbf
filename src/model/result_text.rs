//! The text of a result, whose JSON may be cached: results make up nearly all of a long request.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A text and its JSON.
#[derive(Debug)]
pub struct WrittenText {
    text: String,
    json: Box<RawValue>,
}

/// The text of a result.
#[derive(Debug, Clone)]
pub struct ResultText<'a> {
    words: Cow<'a, str>,
    known: Option<Arc<WrittenText>>,
}

impl WrittenText {
    /// Writes a text.
    pub fn write(text: &str) -> Self {
        let json = to_raw_value(text).expect("a text is JSON, and memory takes it");
        Self { text: text.to_owned(), json }
    }

    /// True if this is the encoded text.
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

impl ResultText<'_> {
    /// Uses the encoding of an earlier request, which must be of this text.
    pub fn reuse(&mut self, known: &Arc<WrittenText>) {
        debug_assert!(known.is(self), "another text was written");
        self.known = Some(Arc::clone(known));
    }

    /// Adds to the text.
    pub fn push_str(&mut self, more: &str) {
        self.known = None;
        self.words.to_mut().push_str(more);
    }
}

impl Deref for ResultText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for ResultText<'a> {
    fn from(words: T) -> Self {
        Self { words: words.into(), known: None }
    }
}

impl PartialEq for ResultText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Serialize for ResultText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.known {
            Some(known) => known.json.serialize(serializer),
            None => serializer.serialize_str(&self.words),
        }
    }
}
