//! Tests of whole conversations, and the doubles that they talk to.

mod puppet;

mod courses;
