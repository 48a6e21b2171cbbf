//! The frame of an event: everything around its text. Most servers repeat it byte for byte, so the text of the next
//! event is found by comparison, without parsing the JSON around it again.

/// The bytes before and after the text of an event, its quotes included. An empty frame matches nothing.
#[derive(Debug, Default)]
pub struct EventFrame {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl EventFrame {
    /// Learns the frame of `data`, whose only meaning is `text`. Text that was written with escapes has none.
    pub fn learn(&mut self, data: &[u8], text: &str) {
        let Some(start) = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else { return };
        let end = start + text.len();
        let is_quoted = start > 0 && data.get(start - 1) == Some(&b'"') && data.get(end) == Some(&b'"');
        if is_quoted && data[start..end] == *text.as_bytes() {
            self.before.clear();
            self.before.extend_from_slice(&data[..start]);
            self.after.clear();
            self.after.extend_from_slice(&data[end..]);
        }
    }

    /// The text of an event in this frame; `None` if the event has another frame or its text has escapes.
    pub fn text<'d>(&self, data: &'d [u8]) -> Option<&'d str> {
        if self.before.is_empty() {
            return None;
        }
        let text = data.strip_prefix(&self.before[..])?.strip_suffix(&self.after[..])?;
        let is_plain = text.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
        std::str::from_utf8(text).ok().filter(|_| is_plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt() -> EventFrame {
        let data = r#"{"a":1,"t":"one","b":{}}"#;
        let mut frame = EventFrame::default();
        frame.learn(data.as_bytes(), &data[12..15]);
        frame
    }

    #[test]
    fn a_text_in_the_same_frame_is_found() {
        for (data, text) in [
            (r#"{"a":1,"t":"two","b":{}}"#, Some("two")),
            (r#"{"a":1,"t":"","b":{}}"#, Some("")),
            (r#"{"a":1,"t":"日本 🙂","b":{}}"#, Some("日本 🙂")),
            // Read as JSON instead: an escape, another field, a second field of the same bytes, a control character.
            (r#"{"a":1,"t":"a\nb","b":{}}"#, None),
            (r#"{"a":2,"t":"two","b":{}}"#, None),
            (r#"{"a":1,"t":"two","b":{},"t":"three","b":{}}"#, None),
            ("{\"a\":1,\"t\":\"a\nb\",\"b\":{}}", None),
            (r#"{"a":1,"t":"#, None),
            ("", None),
        ] {
            assert_eq!(learnt().text(data.as_bytes()), text, "{data}");
        }
        assert_eq!(learnt().text(b"{\"a\":1,\"t\":\"\xff\",\"b\":{}}"), None);
        assert_eq!(EventFrame::default().text(b""), None);
    }

    #[test]
    fn a_text_from_elsewhere_leaves_the_frame_as_it_is() {
        let mut frame = learnt();
        frame.learn(br#"{"t":"one"}"#, "one");
        assert_eq!(frame.text(br#"{"a":1,"t":"two","b":{}}"#), Some("two"));
    }
}
