//! How far the reading of logs is, for those who wait for it.

/// How far a reading is that may take long: what is done, and what there is in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Far {
    /// Of one log, in bytes.
    Bytes(u64, u64),
    /// Logs of a list.
    Logs(u64, u64),
}
