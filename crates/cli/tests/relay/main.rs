//! `mcpproxy stdio` in front of a daemon: both eras, restarts of the daemon, and bounds.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod client;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod restarts;
