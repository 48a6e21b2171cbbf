//! The program seen from outside: one binary, a scripted server, a terminal, and the rules of the house.

mod run;
mod output;
mod reply;
mod server;
mod pty;
mod lifeline;

mod cli;
mod exit_codes;
mod house;
mod approval;
mod tools;
mod sessions;
mod provider;
mod calls;
mod limits;
mod streams;
mod wire;
