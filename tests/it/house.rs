//! The rules of the house. Each fails with a sentence that says what to do; the tables stand at the top of the files.

mod floors;
mod doors;
mod words;
mod source;
