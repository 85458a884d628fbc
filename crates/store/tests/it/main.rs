//! The store from outside: round trips, every crash of a save, damage of every kind, hostile files, real files.
#![allow(clippy::unwrap_used)]

mod common;
mod crash;
mod damage;
mod hostile;
mod roundtrip;
mod run;
