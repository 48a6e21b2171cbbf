//! The rules of the house. A breach of the architecture fails, with a sentence that says what to do; what is a matter
//! of words warns on stderr. The tables stand at the top of the files.

mod floors;
mod names;
mod doors;
mod rings;
mod words;
mod source;
mod paths;
