//! Waits around a request: for the disk, for a time, for a reply that does not begin.

use std::time::Duration;

use crate::agent::Emitter;
use crate::config::format_duration;
use crate::conversation::event::EventKind;
use crate::conversation::session::Syncing;

/// The time without a reply after which the person is warned.
pub(in crate::agent) const SILENT_FOR: Duration = Duration::from_secs(15);

/// Waits for the beginning of a reply. Warns if that takes long.
pub(in crate::agent) async fn wait_for_reply<T>(emitter: &Emitter, asked: impl Future<Output = T>) -> T {
    tokio::pin!(asked);
    tokio::select! {
        biased;
        answer = &mut asked => return answer,
        () = tokio::time::sleep(SILENT_FOR) => {
            emitter.notify(report_silence());
        }
    }
    asked.await
}

pub(in crate::agent) fn report_silence() -> EventKind {
    let message = format!("the model has not begun to answer for {}", format_duration(SILENT_FOR));
    EventKind::Warning { message }
}

/// Waits until a time; forever without one.
pub(in crate::agent) async fn wait_until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the recorded entries are durable.
pub(in crate::agent) async fn wait_for_disk(syncing: Option<Syncing>) -> anyhow::Result<()> {
    let Some(syncing) = syncing else { return Ok(()) };
    Ok(tokio::task::spawn_blocking(|| syncing.wait()).await??)
}
