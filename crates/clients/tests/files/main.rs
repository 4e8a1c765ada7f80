//! Other programs' files, as they are found in a home directory, before and after us.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod connect;
#[cfg(test)]
mod moving;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod support;
#[cfg(test)]
mod undo;
