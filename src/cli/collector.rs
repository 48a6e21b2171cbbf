//! Sends events to a telemetry collector, if one is configured.

use std::time::Duration;

use crate::app;
use crate::config::Config;
use crate::contract::EventSink;
use crate::sink::{Closing, Fanout, Otlp};

use super::{Failure, exit};

/// The longest wait for the last batch at the end of the program.
const LAST_BATCH: Duration = Duration::from_secs(1);

/// The export to the collector, if one is configured.
#[derive(Debug, Default)]
pub(super) struct Export {
    closing: Option<Closing>,
}

impl Export {
    /// Adds the collector to `sink`, if one is configured.
    pub fn beside(sink: Box<dyn EventSink>, config: &Config) -> Result<(Box<dyn EventSink>, Self), Failure> {
        let Some(collector) = app::collector(config) else { return Ok((sink, Self::default())) };
        let (otlp, closing) = Otlp::new(collector)
            .map_err(|why| Failure::new(exit::CONFIGURATION, anyhow::anyhow!("telemetry.otlp_endpoint: {why}")))?;
        let sink = Box::new(Fanout { sinks: vec![sink, Box::new(otlp)] });
        Ok((sink, Self { closing: Some(closing) }))
    }

    /// Sends the rest. Stays silent after a failed run, whose last line is its reason.
    pub fn close(self, code: u8) {
        let Some(closing) = self.closing else { return };
        if let Err(why) = closing.close(LAST_BATCH)
            && code == exit::DONE
        {
            super::warn(&format!("not all telemetry was exported: {why}"));
        }
    }
}
