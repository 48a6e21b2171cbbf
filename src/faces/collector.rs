//! Sends events to a telemetry collector, if one is configured and the program was built with the feature `otlp`.

use crate::agent::assembly::{SetupError, SinkOpener};
use crate::config::Config;
use crate::conversation::EventSink;

#[cfg(feature = "otlp")]
use {crate::agent::assembly, crate::screen, std::sync::Arc};

/// The longest wait for the last batch at the end of the program.
#[cfg(feature = "otlp")]
const LAST_BATCH: std::time::Duration = std::time::Duration::from_secs(1);

/// The export to the collector, if one is configured.
#[derive(Debug, Default)]
pub struct CollectorExport {
    #[cfg(feature = "otlp")]
    export: Option<screen::OtlpExport>,
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

#[cfg_attr(
    not(feature = "otlp"),
    expect(clippy::unnecessary_wraps, clippy::unused_self, unused_variables, reason = "see `otlp`")
)]
impl CollectorExport {
    /// The export of a configuration.
    ///
    /// # Errors
    /// The address of the collector is none.
    pub fn open(config: &Config) -> Result<Self, SetupError> {
        #[cfg(feature = "otlp")]
        if let Some(collector) = find_collector(config) {
            let wrong = |why| SetupError::configuration(format!("telemetry.otlp_endpoint: {why}"));
            let export = screen::OtlpExport::start(collector).map_err(wrong)?;
            return Ok(Self { export: Some(export) });
        }
        Ok(Self::default())
    }

    /// Sends events to the collector as well as to `sink`.
    pub fn attach(&self, sink: Box<dyn EventSink>) -> Box<dyn EventSink> {
        #[cfg(feature = "otlp")]
        if let Some(open) = self.opener() {
            return Box::new(screen::Fanout { sinks: vec![sink, open()] });
        }
        sink
    }

    /// What opens a sink for each of many runs.
    pub fn opener(&self) -> Option<SinkOpener> {
        #[cfg(feature = "otlp")]
        if let Some(export) = &self.export {
            let open = export.opener();
            return Some(Arc::new(move || Box::new(open())));
        }
        None
    }

    /// The export that takes figures, if there is one.
    #[cfg(all(feature = "otlp", feature = "scale"))]
    pub fn gauges(&self) -> Option<&screen::OtlpExport> {
        self.export.as_ref()
    }

    /// Sends the remaining events, and waits for that a second at most.
    ///
    /// # Errors
    /// Some were not sent: a sentence.
    pub fn close(self) -> Result<(), String> {
        #[cfg(feature = "otlp")]
        if let Some(export) = self.export {
            let wrong = |why| format!("not all telemetry was exported: {why}");
            return export.close(LAST_BATCH).map_err(wrong);
        }
        Ok(())
    }
}
