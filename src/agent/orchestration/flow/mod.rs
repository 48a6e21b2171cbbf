//! Flows: fixed steps, run by a machine. `values` says what a text reads and what a step is given, `machine` what runs
//! next; `drive` makes the calls and requests.

mod values;
mod machine;
