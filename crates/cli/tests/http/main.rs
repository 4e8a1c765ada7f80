//! The daemon against clients that are slow, silent, many or forging, and how it stops.

#[cfg(test)]
mod connections;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod open_files;
#[cfg(test)]
mod places;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod slow_clients;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod support;
#[cfg(test)]
mod wire;
