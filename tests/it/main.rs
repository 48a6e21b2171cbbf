//! The program seen from outside: one binary, a scripted server, a terminal, and the rules of the house.

#![expect(clippy::format_collect, reason = "a text in a test is read more often than it is made")]

mod run;
mod output;
mod reply;
mod server;
mod pty;
mod lifeline;

mod cli;
mod exit_codes;
mod house;
mod signals;
mod secrets;
mod sandbox;
mod protected;
mod configuration;
mod prompting;
mod repl;
mod terminal;
mod approval;
mod taint;
mod attacks;
mod tools;
mod skills;
mod skill_files;
mod more_tools;
mod command_time;
mod command_tools;
mod selection;
mod tool_cli;
mod tool_output;
mod sessions;
mod provider;
mod background;
mod calls;
mod limits;
mod context;
mod compaction;
mod streams;
mod summaries;
mod events;
mod telemetry;
mod wire;
mod built_in_skills;
mod skill_scripts;
