//! A session: one conversation, in memory and as an append-only log on disk.
