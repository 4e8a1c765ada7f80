//! The daemon against clients that are slow, silent, many or forging, and how it stops.

mod connections;
mod keys;
mod open_files;
mod places;
mod servers;
mod slow_clients;
mod stopping;
mod support;
mod wire;
