//! The tokens that a server reports: at the start of a stream and, cumulatively, at its end.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::assembly::Assembly;
use super::super::lenient::read_count;
use crate::conversation::message::Usage;

/// The usage reported so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The tokens that neither came from the cache nor went into it.
    plain: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    thinking: u64,
}

impl Counts {
    /// Takes a report, in which figures may be missing. A later figure corrects an earlier one, except that nothing
    /// becomes zero: proxies write that for what they did not count.
    pub fn take(&mut self, raw: &RawValue, reply: &mut Assembly) {
        let Ok(report) = serde_json::from_str::<Value>(raw.get()) else { return };
        for (figure, path) in [
            (&mut self.plain, "/input_tokens"),
            (&mut self.cache_read, "/cache_read_input_tokens"),
            (&mut self.cache_write, "/cache_creation_input_tokens"),
            (&mut self.output, "/output_tokens"),
            (&mut self.thinking, "/output_tokens_details/thinking_tokens"),
        ] {
            if let Some(later) = report.pointer(path).and_then(read_count).filter(|later| *later > 0) {
                *figure = later;
            }
        }
        let usage = Usage {
            input_tokens: self.plain.saturating_add(self.cache_read).saturating_add(self.cache_write),
            cached_input_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            output_tokens: self.output,
            reasoning_tokens: self.thinking.min(self.output),
            estimated: false,
            cost_about: false,
        };
        if usage.input_tokens > 0 {
            reply.report(usage);
        }
        if let Some(usd) = report.get("cost").and_then(Value::as_f64) {
            reply.cost(usd);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::conversation::message::Origin;

    #[test]
    fn reports_add_up() {
        let origin = Origin { wire: "anthropic".to_owned(), host: "h".to_owned(), model: "m".to_owned() };
        let (mut counts, mut reply) = (Counts::default(), Assembly::new(origin, HashSet::new()));
        for report in [
            r#"{"input_tokens":3,"cache_read_input_tokens":9000,"cache_creation_input_tokens":null,"output_tokens":1}"#,
            r#"{"input_tokens":0,"cache_creation_input_tokens":20,"output_tokens":40,"cost":0.25}"#,
            r#"{"output_tokens":41.0,"output_tokens_details":{"thinking_tokens":30}}"#,
            "3",
        ] {
            counts.take(serde_json::from_str(report).expect("JSON"), &mut reply);
        }
        let end = reply.end(|| 0);
        let usage = Usage {
            input_tokens: 9023,
            cached_input_tokens: 9000,
            cache_write_tokens: 20,
            output_tokens: 41,
            reasoning_tokens: 30,
            estimated: false,
            cost_about: false,
        };
        assert_eq!((end.usage, end.cost_usd), (usage, Some(0.25)));
    }
}
