//! Sends events to a telemetry collector, if one is configured and the program was built with the feature `otlp`.

use crate::config::Config;
use crate::conversation::EventSink;

use super::CommandFailure;

#[cfg(feature = "otlp")]
use {super::exit, crate::agent::assembly, crate::screen, std::sync::Arc};

/// The longest wait for the last batch at the end of the program.
#[cfg(feature = "otlp")]
const LAST_BATCH: std::time::Duration = std::time::Duration::from_secs(1);

/// The export to the collector, if one is configured.
#[derive(Debug, Default)]
pub(super) struct CollectorExport {
    #[cfg(feature = "otlp")]
    closing: Option<screen::OtlpExport>,
}

/// The collector to which telemetry is sent, if one is configured.
#[cfg(feature = "otlp")]
fn find_collector(config: &Config) -> Option<screen::Collector> {
    let settings = &config.settings.telemetry;
    let endpoint = settings.otlp_endpoint.clone().filter(|endpoint| !endpoint.trim().is_empty())?;
    let value = |secret: &crate::base::secrets::Secret| secret.reveal().trim().to_owned();
    Some(screen::Collector {
        endpoint,
        headers: settings.otlp_headers.iter().map(|(name, secret)| (name.clone(), value(secret))).collect(),
        net: Arc::new(assembly::open_net(config)),
    })
}

impl CollectorExport {
    /// Sends events to the collector as well as to `sink`, if a collector is configured.
    #[cfg_attr(not(feature = "otlp"), expect(clippy::unnecessary_wraps, unused_variables, reason = "see `otlp`"))]
    pub fn attach_collector(
        sink: Box<dyn EventSink>,
        config: &Config,
    ) -> Result<(Box<dyn EventSink>, Self), CommandFailure> {
        #[cfg(feature = "otlp")]
        if let Some(collector) = find_collector(config) {
            let (otlp, closing) = screen::Otlp::new(collector).map_err(|why| {
                CommandFailure::word(exit::CONFIGURATION, format!("telemetry.otlp_endpoint: {why}"))
            })?;
            let sink = Box::new(screen::Fanout { sinks: vec![sink, Box::new(otlp)] });
            return Ok((sink, Self { closing: Some(closing) }));
        }
        Ok((sink, Self::default()))
    }

    /// Sends the remaining events. Stays silent after a failed run: its last line must be the reason of the failure.
    #[cfg_attr(not(feature = "otlp"), expect(clippy::unused_self, unused_variables, reason = "see `otlp`"))]
    pub fn close(self, code: u8) {
        #[cfg(feature = "otlp")]
        if let Some(closing) = self.closing
            && let Err(why) = closing.close(LAST_BATCH)
            && code == exit::DONE
        {
            super::warn_person(&format!("not all telemetry was exported: {why}"));
        }
    }
}
