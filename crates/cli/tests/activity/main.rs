//! The activity log from outside: every call is in it, whatever happens, and it can be searched,
//! exported, watched and proved. One program for all of it, because linking takes long.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod contents;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod events;
mod export;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod intent;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod load;
#[cfg(test)]
mod paging;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tampering;
#[cfg(test)]
mod watch;
#[cfg(test)]
mod wire;
