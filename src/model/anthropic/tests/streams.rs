//! Streams that break off.

use std::collections::HashSet;
use std::path::Path;

use super::super::super::assembly::Assembly;
use super::super::super::decode::ReplyReading;
use super::super::super::sse;
use super::super::AnthropicDecoder;
use super::super::flags::AnthropicFlags;
use super::make::origin;

#[test]
fn a_stream_that_breaks_off_is_no_reply() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire_cases/anthropic");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let case = std::fs::read_to_string(entry.expect("an entry").path()).expect("a readable case");
        let Some(end) = case.find("message_stop") else { continue };
        let body = &case.as_bytes()[..end];
        for cut in 0..body.len() {
            let origin = origin();
            let mut reading = ReplyReading::new(
                Box::new(AnthropicDecoder::new(&AnthropicFlags::default())),
                Assembly::new(origin, HashSet::new()),
            );
            let mut stream = sse::SseDecoder::default();
            let mut take = |event: sse::SseEvent<'_>| reading.event(event.name, event.data).is_ok();
            stream.feed(&body[..cut], &mut take).expect("a short stream");
            stream.finish(&mut take);
            assert!(!reading.reply.is_finished(), "{}", String::from_utf8_lossy(&body[..cut]));
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}
