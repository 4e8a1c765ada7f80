//! Children through the watchdog and the launcher, as processes of the system.
#![cfg(test)]
#![cfg(target_os = "linux")]

mod kills;
mod launcher;
mod start;
mod support;
mod watchdog;
