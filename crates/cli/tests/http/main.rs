//! The daemon against clients that are slow, silent, many or forging, and how it stops.

mod connections;
mod open_files;
mod servers;
mod slow_clients;
mod stopping;
mod support;
mod wire;
