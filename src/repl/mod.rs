//! The interactive front end: a line editor, slash commands, one turn after another.
