//! The demo server as a client sees it.
#![cfg(test)]

mod bad_input;
mod definitions;
mod life_cycle;
mod peers;
mod persistence;
mod progress;
mod support;
mod tools;
