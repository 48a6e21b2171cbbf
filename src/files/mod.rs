//! Files and the directory that paths are relative to: careful opening, the names that may be shown, what is protected and
//! what is ignored.

pub mod protected;
pub mod file_name;
pub mod regular;
pub mod disk;
pub mod workspace;
pub mod ignored;
