//! The directory for temporary files of commands: where it is, and where they see it.

use std::io;
use std::path::PathBuf;

use super::{TEMP, Walls};

/// The directory for temporary files of commands.
#[derive(Debug)]
pub struct TempRoom {
    /// Where it is.
    pub dir: PathBuf,
    /// Where commands see it.
    pub seen_as: PathBuf,
}

impl Walls {
    /// The directory for temporary files (`TMPDIR`) of commands, as they see it; emptied when the run ends.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn temp_dir(&self) -> io::Result<PathBuf> {
        match self.space {
            Some(_) => Ok(PathBuf::from(TEMP)),
            None => self.ground.temp_dir().map_err(io::Error::other),
        }
    }

    /// That directory, where this program and where commands see it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn temp_room(&self) -> io::Result<TempRoom> {
        Ok(TempRoom { dir: self.ground.temp_dir().map_err(io::Error::other)?, seen_as: self.temp_dir()? })
    }
}
