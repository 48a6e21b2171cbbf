//! Pictures that a provider refuses, or is known to refuse: exactly those become notes, and the others stay.

use crate::model::{ModelError, PictureLimits, PictureRefusal};

use super::Turn;
use super::refused::RefusalTries;
use super::refused_parts::{RefusedKind, RefusedPart, list_pictures};

/// The most tries for one request.
const MOST_TRIES: usize = 12;

/// The bytes of pictures, as they are sent, that can make a request too large.
const LARGE: usize = 512 << 10;

impl Turn<'_> {
    /// Leaves the oldest pictures out of a request that its provider is known to refuse: it has more of them than that takes,
    /// or theirs are over three quarters of its most bytes. False if all may stay.
    pub(super) fn withhold_surplus_pictures(&mut self) -> bool {
        let info = self.agent.model.info();
        let PictureLimits { most, request_bytes } = info.pictures;
        let (mut surplus, mut count, mut bytes) = (Vec::new(), 0, 0);
        let pictures: Vec<_> = list_pictures(self.conversation.session.items()).collect();
        for (part, image) in pictures.into_iter().rev().filter(|(_, image)| info.shows(image)) {
            count += 1;
            bytes += image.data.len() as u64;
            if most.is_some_and(|most| count > most) || request_bytes.is_some_and(|most| bytes > most / 4 * 3) {
                surplus.push(part);
            }
        }
        if surplus.is_empty() {
            return false;
        }
        let limits = [(most, "pictures"), (request_bytes, "bytes")];
        let limits = limits.into_iter().filter_map(|(limit, what)| Some(format!("{} {what}", limit?)));
        let why = format!("at most {} in a request", limits.collect::<Vec<_>>().join(" and "));
        self.leave_out(&surplus, why, false, RefusalTries::default())
    }

    /// The pictures to leave out, if the refusal is about pictures: those at which it points; of too many, the oldest;
    /// else one after another alone, from the newest on, and at last all.
    pub(super) fn find_refused_pictures(
        &mut self,
        pointed: &[RefusedPart],
        error: &ModelError,
        tries: &mut usize,
    ) -> Vec<RefusedPart> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        for (part, image) in list_pictures(self.conversation.session.items()) {
            all.push(part);
            bytes += image.data.len();
        }
        let Some(refusal) = error.find_picture_refusal().filter(|_| *tries < MOST_TRIES) else {
            return Vec::new();
        };
        let pointed = pointed.iter().filter(|part| matches!(part.kind, RefusedKind::Picture { .. }));
        let pointed: Vec<RefusedPart> = pointed.copied().collect();
        let withheld = self.withheld.as_mut().map(|withheld| &mut withheld.parts);
        let sent = all.iter().filter(|part| withheld.as_ref().is_none_or(|parts| !parts.contains(part)));
        let mut sent: Vec<RefusedPart> = sent.copied().collect();
        let is_of_text = refusal == PictureRefusal::TooLarge && bytes < LARGE;
        if all.is_empty() || is_of_text || sent.is_empty() && refusal != PictureRefusal::One {
            return Vec::new();
        }
        *tries += 1;
        match refusal {
            _ if !pointed.is_empty() => pointed,
            PictureRefusal::TooMany(Some(most)) if most < sent.len() => {
                sent.truncate(sent.len() - most);
                sent
            }
            PictureRefusal::TooMany(_) | PictureRefusal::TooLarge => {
                sent.truncate(sent.len().div_ceil(2));
                sent
            }
            PictureRefusal::One => match all.len().checked_sub(*tries) {
                Some(at) => {
                    if let Some(parts) = withheld {
                        parts.retain(|part| !all.contains(part));
                    }
                    vec![all[at]]
                }
                None if sent.is_empty() => Vec::new(),
                None => all,
            },
        }
    }
}
