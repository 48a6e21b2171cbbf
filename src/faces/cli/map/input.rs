//! The lines of stdin as items: JSON objects or values, or plain text. They are read as they are needed, by a thread.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::base::digest::hash_sha256;

use super::super::args::InputForm;

/// The longest line, in bytes.
const LONGEST: usize = 16 << 20;
/// The lines that wait to be taken.
const AHEAD: usize = 64;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct MapItem {
    /// The `id` of its object, else the digest of the line.
    pub id: String,
    /// True if the id was given.
    pub is_given: bool,
    /// The value; or what is wrong with the line.
    pub value: Result<Value, String>,
}

/// The lines of an input.
pub struct MapItems {
    receiver: mpsc::Receiver<io::Result<MapItem>>,
    /// The bytes of the lines that were read.
    consumed: Arc<AtomicU64>,
    /// The bytes of the whole input, if it is a file.
    size: Option<u64>,
}

impl MapItems {
    /// Begins to read. `size` is that of the whole input in bytes, if it is known.
    pub fn read(input: impl io::Read + Send + 'static, form: InputForm, size: Option<u64>) -> Self {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&consumed);
        thread::spawn(move || {
            let mut lines = BoundedLines { from: BufReader::new(input), is_first: true, counted };
            let mut form = form;
            while let Some(line) = lines.next_line().transpose() {
                let item = line.map(|line| parse_line(line, &mut form));
                let is_over = item.is_err();
                if sender.blocking_send(item).is_err() || is_over {
                    return;
                }
            }
        });
        Self { receiver, consumed, size }
    }

    /// How many items there will be in all, if the size of the input is known and `read` of them were read.
    pub fn estimate_count(&self, read: usize) -> Option<u64> {
        let consumed = self.consumed.load(Ordering::Relaxed);
        (read as u64).saturating_mul(self.size?).checked_div(consumed)
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<MapItem>> {
        self.receiver.recv().await.transpose()
    }
}

/// A line, or the number of bytes of one that is too long.
enum BoundedLine {
    Whole(Vec<u8>),
    TooLong(Vec<u8>),
}

struct BoundedLines<R> {
    from: R,
    is_first: bool,
    counted: Arc<AtomicU64>,
}

impl<R: BufRead> BoundedLines<R> {
    /// The next line that is not empty, without its end and without a byte order mark.
    fn next_line(&mut self) -> io::Result<Option<BoundedLine>> {
        loop {
            let (mut line, mut is_long, mut is_over) = (Vec::new(), false, false);
            loop {
                let buffer = self.from.fill_buf()?;
                if buffer.is_empty() {
                    is_over = true;
                    break;
                }
                let end = buffer.iter().position(|byte| *byte == b'\n');
                let taken = end.unwrap_or(buffer.len());
                is_long |= line.len() + taken > LONGEST;
                if !is_long {
                    line.extend_from_slice(&buffer[..taken]);
                }
                let taken = taken + usize::from(end.is_some());
                self.from.consume(taken);
                self.counted.fetch_add(taken as u64, Ordering::Relaxed);
                if end.is_some() {
                    break;
                }
            }
            if std::mem::take(&mut self.is_first) && line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if is_long {
                line.truncate(LONGEST / 1024);
                return Ok(Some(BoundedLine::TooLong(line)));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(BoundedLine::Whole(line)));
            }
            if is_over {
                return Ok(None);
            }
        }
    }
}

fn parse_line(line: BoundedLine, form: &mut InputForm) -> MapItem {
    let line = match line {
        BoundedLine::Whole(line) => line,
        BoundedLine::TooLong(beginning) => {
            let why = format!("the line is longer than {} MiB", LONGEST >> 20);
            return MapItem { id: name_line(&beginning), is_given: false, value: Err(why) };
        }
    };
    let parsed = || serde_json::from_slice::<Value>(&line);
    if *form == InputForm::Auto {
        let is_json = parsed().is_ok_and(|value| value.is_object());
        *form = if is_json { InputForm::Jsonl } else { InputForm::Text };
    }
    let value = match form {
        InputForm::Jsonl => parsed().map_err(|error| format!("the line is not JSON: {error}")),
        _ => match std::str::from_utf8(&line) {
            Ok(text) => Ok(Value::String(text.to_owned())),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        },
    };
    let given = value.as_ref().ok().and_then(|value| value.get("id")).and_then(|id| match id {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    });
    let is_given = given.is_some();
    MapItem { id: given.unwrap_or_else(|| name_line(&line)), is_given, value }
}

/// A name for a line without an id.
fn name_line(line: &[u8]) -> String {
    hash_sha256([line])[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn items(input: &'static [u8], form: InputForm) -> Vec<MapItem> {
        let mut items = MapItems::read(input, form, None);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async move {
            let mut read = Vec::new();
            while let Some(item) = items.next().await.expect("readable") {
                read.push(item);
            }
            read
        })
    }

    #[test]
    fn the_first_line_decides_the_form() {
        let read = items(b"\xef\xbb\xbf{\"id\": 7, \"a\": 1}\r\n\n{\"a\": 2}\nbroken", InputForm::Auto);
        assert_eq!((read[0].id.as_str(), read[0].is_given), ("7", true));
        assert_eq!(read[1].value, Ok(json!({ "a": 2 })));
        assert!(read[2].value.as_ref().is_err_and(|why| why.contains("not JSON")), "{read:?}");
        let read = items(b"one\n{\"a\": 2}\n\xff\n  \n", InputForm::Auto);
        assert_eq!(read[0].value, Ok(json!("one")));
        assert_eq!(read[1].value, Ok(json!("{\"a\": 2}")));
        assert!(read[2].value.is_err());
        assert_eq!(read.len(), 3);
        assert_eq!(items(b"", InputForm::Auto), []);
        assert_eq!(items(b"\xef\xbb\xbf\n", InputForm::Auto), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_failure() {
        let long: &'static [u8] = [vec![b'a'; LONGEST + 1], b"\nnext".to_vec()].concat().leak();
        let read = items(long, InputForm::Text);
        assert!(read[0].value.is_err());
        assert_eq!(read[1].value, Ok(json!("next")));
        assert_eq!(read.len(), 2);
    }
}
