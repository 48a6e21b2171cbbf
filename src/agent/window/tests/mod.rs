//! Tests of whole plans: cases in files, passes and simulations of random conversations, and the desk that they share.

pub mod desk;

mod cases;
mod passes;
mod simulation;
mod unread;
