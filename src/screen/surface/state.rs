//! The state of the screen on its writing thread.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::answer::ScreenAnswer;
use super::frame::{Area, DrawMoment, FramePart, Picture, Sketch};
use crate::screen::ink::{Line, Style, Theme};

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// The interval between frames of an animation.
const TICK: Duration = Duration::from_millis(100);
/// The interval between checks of the screen's size while nothing is animated.
const GLANCE: Duration = Duration::from_millis(250);
/// Shorter work is not shown, and work that follows within this time replaces the previous work without a gap.
const NOTICEABLE: Duration = Duration::from_millis(150);

/// Facts about the terminal.
#[derive(Clone, Copy)]
pub(in crate::screen) struct SurfaceSetup {
    /// Columns and rows.
    pub size: fn() -> Option<(usize, usize)>,
    pub style: Style,
    /// The terminal rewraps lines when its width changes.
    pub reflows: bool,
}

/// The screen.
pub(in crate::screen) struct Surface {
    setup: SurfaceSetup,
    answer: Option<ScreenAnswer>,
    parts: BTreeMap<FramePart, ShownPicture>,
    /// Painted lines to write above the area.
    committed: String,
    /// The unfinished line of raw bytes.
    begun: String,
    controls: String,
    /// Lines that were not yet written when the screen was suspended.
    owed: String,
    drawn: Area,
    /// How many programs have the screen.
    suspensions: usize,
    /// True if something changed since the last frame.
    dirty: bool,
    last_frame: Option<Instant>,
}

struct ShownPicture {
    picture: Picture,
    since: Instant,
    /// True if it was part of the last frame.
    is_drawn: bool,
    /// The time to remove it, unless it is set again before.
    ends: Option<Instant>,
}

impl Surface {
    pub fn new(setup: SurfaceSetup) -> Self {
        Self {
            setup,
            answer: None,
            parts: BTreeMap::new(),
            committed: String::new(),
            begun: String::new(),
            controls: String::new(),
            owed: String::new(),
            drawn: Area::default(),
            suspensions: 0,
            dirty: false,
            last_frame: None,
        }
    }

    /// Adds text to the answer.
    pub fn say(&mut self, text: &str, markdown: bool) {
        let (width, _) = self.size();
        let style = self.setup.style;
        let answer = self.answer.get_or_insert_with(|| ScreenAnswer::new(markdown, width - 1, style));
        let lines = answer.push(text);
        self.commit(&lines);
    }

    pub fn end_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            let lines = answer.finish();
            self.commit(&lines);
        }
    }

    /// Puts lines above the area.
    pub fn commit(&mut self, lines: &[Line]) {
        for line in lines {
            line.paint_to(&mut self.committed, self.setup.style);
            self.committed += "\r\n";
        }
        self.dirty = true;
    }

    /// Puts raw text above the area. An unfinished line waits for its end.
    pub fn write(&mut self, bytes: &[u8]) {
        self.begun += &String::from_utf8_lossy(bytes);
        if let Some(end) = self.begun.rfind('\n') {
            let rest = self.begun.split_off(end + 1);
            let whole = std::mem::replace(&mut self.begun, rest);
            self.committed += &whole;
        }
        self.dirty = true;
    }

    pub fn control(&mut self, sequence: &str) {
        self.controls += sequence;
        self.dirty = true;
    }

    /// Clears the screen.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only keys and answers of the terminal call it"))]
    pub fn clear(&mut self) {
        self.controls += "\x1b[H\x1b[2J";
        self.drawn = Area::default();
        self.dirty = true;
    }

    pub fn set(&mut self, part: FramePart, picture: Option<Picture>) {
        let now = Instant::now();
        self.dirty = true;
        match (picture, self.parts.get_mut(&part)) {
            (Some(picture), Some(shown)) => {
                shown.picture = picture;
                shown.ends = None;
            }
            (Some(picture), None) => {
                let shown = ShownPicture { picture, since: now, is_drawn: false, ends: None };
                self.parts.insert(part, shown);
            }
            (None, Some(shown)) if part == FramePart::Work && shown.is_drawn => {
                shown.ends = Some(now + NOTICEABLE);
            }
            (None, _) => {
                self.parts.remove(&part);
            }
        }
    }

    /// Ends the answer and removes the parts that belong to a turn.
    pub fn settle(&mut self) {
        self.end_answer();
        self.parts.retain(|part, _| matches!(part, FramePart::Question | FramePart::Typed));
        self.dirty = true;
    }

    #[cfg_attr(not(unix), allow(dead_code, reason = "only keys and answers of the terminal call it"))]
    pub fn set_theme(&mut self, theme: Theme) {
        self.setup.style.theme = theme;
        self.dirty = true;
    }

    pub fn suspend(&mut self) {
        if self.suspensions == 0 {
            self.owed += &std::mem::take(&mut self.committed);
            self.owed += &std::mem::take(&mut self.begun);
        }
        self.suspensions += 1;
        self.dirty = true;
    }

    pub fn resume(&mut self) {
        self.suspensions -= 1;
        self.dirty = true;
    }

    /// True if a frame has yet to be written.
    pub fn is_dirty(&self) -> bool {
        self.dirty && !self.is_waiting()
    }

    /// True if another program has the screen, and everything must wait.
    fn is_held(&self) -> bool {
        self.suspensions > 0
    }

    /// True if everything left to write waits for the screen.
    fn is_waiting(&self) -> bool {
        self.is_held() && self.drawn.rows.is_empty() && self.owed.is_empty()
    }

    /// The time when the next frame is due; `None` until something changes.
    pub fn next_frame(&self) -> Option<Instant> {
        let last = self.last_frame?;
        if self.is_dirty() {
            return Some(last + FRAME);
        }
        // The line alone changes with its keys, and whoever waits for it says when the screen changes.
        let rests = self.answer.is_none() && self.parts.keys().all(|part| *part == FramePart::Typed);
        if self.is_held() || rests {
            return None;
        }
        let moves = self.parts.contains_key(&FramePart::Work);
        Some(last + if moves { TICK } else { GLANCE })
    }

    /// Draws a frame. Returns the bytes that bring the screen up to date.
    pub fn frame(&mut self) -> String {
        let now = Instant::now();
        self.last_frame = Some(now);
        if self.is_waiting() {
            return String::new();
        }
        self.dirty = false;
        let (width, height) = self.size();
        let mut committed = std::mem::take(&mut self.owed);
        let mut controls = String::new();
        let area = if self.is_held() {
            self.parts.values_mut().for_each(|shown| shown.is_drawn = false);
            Area { width, ..Area::default() }
        } else {
            committed += &std::mem::take(&mut self.committed);
            controls = std::mem::take(&mut self.controls);
            let sketches = self.sketches(now, width - 1, height - 1);
            Area::stack(sketches, width - 1, width, self.setup.style)
        };
        let bytes = self.drawn.turned_into(&area, &committed, self.setup.reflows);
        self.drawn = area;
        controls + &bytes
    }

    /// Draws the parts. The parts that the person acts on get their rows first; the answer gets the rest.
    fn sketches(&mut self, now: Instant, room: usize, rows: usize) -> Vec<Sketch> {
        self.parts.retain(|_, shown| shown.ends.is_none_or(|ends| now < ends));
        let mut left = rows;
        let mut sketches = BTreeMap::new();
        for part in [FramePart::Typed, FramePart::Question, FramePart::Work, FramePart::Lists] {
            let Some(shown) = self.parts.get_mut(&part) else { continue };
            let elapsed = now.duration_since(shown.since);
            if part == FramePart::Work && !shown.is_drawn && elapsed < NOTICEABLE {
                continue;
            }
            let tick = usize::try_from(elapsed.as_millis() / TICK.as_millis()).unwrap_or_default();
            let mut sketch = (shown.picture)(&DrawMoment { room, rows: left, tick });
            sketch.lines.truncate(left);
            shown.is_drawn = !sketch.lines.is_empty();
            left -= sketch.lines.len();
            sketches.insert(part, sketch);
        }
        if let Some(answer) = &mut self.answer {
            sketches.insert(FramePart::Tail, Sketch::from(answer.tail(room, left)));
        }
        sketches.into_values().collect()
    }

    /// Columns and rows, at least two of each, to have room for something.
    fn size(&self) -> (usize, usize) {
        let (columns, rows) = (self.setup.size)().unwrap_or((80, 24));
        (columns.max(2), rows.max(2))
    }
}
