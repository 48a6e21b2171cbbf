//! Reads the events of a stream with the decoder of its wire. Handles what all wires share: empty events, `[DONE]`,
//! halves of surrogate pairs, limits.

use super::assembly::{Assembly, Broken};
use super::event_stream::{EventFinder, Framing};
use super::{bounds, surrogates};
use crate::base::text;

/// Reads the events of one wire into a reply. Pure: no I/O, no clock.
pub trait Decode: Send {
    /// Takes one event. `name` is the value of `event:`, empty if there is none; `data` is not empty.
    ///
    /// # Errors
    /// [`Misread::NotJson`] before anything was taken; [`Misread::Broken`] if the reply cannot be completed.
    fn event(&mut self, name: &[u8], data: &[u8], reply: &mut Assembly) -> Result<(), Misread>;

    /// Takes a body that is one complete reply; returns `Ok(false)` if it is something else.
    ///
    /// # Errors
    /// Those of [`Decode::event`].
    fn whole(&mut self, body: &[u8], reply: &mut Assembly) -> Result<bool, Misread>;

    /// Passes on what was held back, as nothing more comes.
    fn conclude(&mut self, _reply: &mut Assembly) {}

    /// True if `[DONE]` completes a reply. Otherwise it is ignored.
    fn ends_with_done(&self) -> bool {
        true
    }

    /// The way in which the server puts events into a body.
    fn framing(&self) -> Framing {
        Framing::ServerSent
    }
}

/// The reason that an event was not taken.
#[derive(Debug, PartialEq)]
pub enum Misread {
    NotJson,
    Broken(Broken),
}

impl From<Broken> for Misread {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<serde_json::Error> for Misread {
    fn from(_: serde_json::Error) -> Self {
        Self::NotJson
    }
}

/// A reply being read.
pub struct ReplyReading {
    decoder: Box<dyn Decode>,
    pub reply: Assembly,
}

impl ReplyReading {
    pub fn new(decoder: Box<dyn Decode>, reply: Assembly) -> Self {
        Self { decoder, reply }
    }

    /// Finds the events in the bytes of the stream.
    pub fn find_events(&self) -> EventFinder {
        EventFinder::new(self.decoder.framing())
    }

    /// Takes one event of a stream.
    ///
    /// # Errors
    /// The reason that the reply cannot be completed. Nothing spoils a reply that has ended.
    pub fn event(&mut self, name: &[u8], data: &[u8]) -> Result<(), Broken> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        if data == b"[DONE]" {
            if self.decoder.ends_with_done() {
                self.decoder.conclude(&mut self.reply);
                self.reply.mark_complete();
            }
            return Ok(());
        }
        let was_done = self.reply.is_done();
        let read = self.read(name, data);
        if !matches!(read, Err(Broken::Error(_))) {
            self.reply.mark_begun();
        }
        match read {
            Err(_) if was_done => Ok(()),
            read => read,
        }
    }

    fn read(&mut self, name: &[u8], data: &[u8]) -> Result<(), Broken> {
        bounds::check_values(data).map_err(Broken::TooLarge)?;
        match read_mended(data, |data| self.decoder.event(name, data, &mut self.reply)) {
            Ok(()) => self.reply.check_size(),
            Err(Misread::Broken(broken)) => Err(broken),
            // Nothing that follows a finished reply can spoil it.
            Err(Misread::NotJson) if self.reply.is_finished() => Ok(()),
            Err(Misread::NotJson) => Err(refuse_data(&self.reply.redact(&String::from_utf8_lossy(data)))),
        }
    }

    /// Takes a body that is one complete reply; returns `Ok(false)` if it is something else.
    ///
    /// # Errors
    /// The reason that the reply cannot be completed.
    pub fn whole(&mut self, body: &[u8]) -> Result<bool, Broken> {
        bounds::check_values(body).map_err(Broken::TooLarge)?;
        let body = body.trim_ascii();
        match read_mended(body, |body| self.decoder.whole(body, &mut self.reply)) {
            Ok(is_reply) => self.reply.check_size().map(|()| is_reply),
            Err(Misread::Broken(broken)) => {
                if !matches!(broken, Broken::Error(_)) {
                    self.reply.mark_begun();
                }
                Err(broken)
            }
            Err(Misread::NotJson) => Ok(false),
        }
    }
}

/// Reads JSON, again without halves of surrogate pairs if it is none with them.
fn read_mended<T>(data: &[u8], mut read: impl FnMut(&[u8]) -> Result<T, Misread>) -> Result<T, Misread> {
    match read(data) {
        Err(Misread::NotJson) => read(&surrogates::without_lone(data).ok_or(Misread::NotJson)?),
        done => done,
    }
}

fn refuse_data(data: &str) -> Broken {
    const SHOWN: usize = 120;
    let data = text::one_line(data, SHOWN);
    Broken::Unreadable(format!("the stream broke: an event is not JSON: {data}"))
}
