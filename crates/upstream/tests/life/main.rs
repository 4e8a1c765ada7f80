//! What becomes of a fleet when its upstreams misbehave. The upstreams are real processes.
#![cfg(test)]

mod calls;
mod death;
mod health;
mod listing;
mod support;
