//! What a request holds and what it may hold.
