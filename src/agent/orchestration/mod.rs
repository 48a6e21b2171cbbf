//! Ways to carry out a request besides the plain loop.

mod explore;
