//! The built-in tools, one file each; this list names them all.
