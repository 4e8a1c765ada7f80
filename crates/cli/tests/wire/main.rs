//! Attacks on the wire by clients, tried against the real binary on every way in.
#![cfg(test)]

mod meaning;
mod support;
