//! A process group, identified so that a recycled pid is not taken for it.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::start_time::start_time;

/// The group of a child that was started as its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    /// Greater than 1: signals to group 1 would reach every process of the user.
    leader: Pid,
    /// When the leader was started; 0 where the system does not tell.
    started: u64,
}

// === impl Group ===

impl Group {
    pub(crate) const BYTES: usize = 12;

    /// The group of a child that has not been waited for, so that its pid cannot be recycled yet.
    pub(crate) fn of_child(pid: u32) -> Option<Self> {
        Self::new(pid, start_time(pid).unwrap_or(0))
    }

    fn new(leader: u32, started: u64) -> Option<Self> {
        let leader = i32::try_from(leader).ok().filter(|pid| *pid > 1)?;
        let leader = Pid::from_raw(leader)?;
        Some(Self { leader, started })
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (leader, started) = bytes.split_at_mut(4);
        leader.copy_from_slice(&self.leader_pid().to_le_bytes());
        started.copy_from_slice(&self.started.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let (leader, started) = bytes.split_first_chunk()?;
        let started = started.first_chunk()?;
        Self::new(u32::from_le_bytes(*leader), u64::from_le_bytes(*started))
    }

    /// Whether any process of the group is left.
    pub(crate) fn is_alive(self) -> bool {
        self.owns_its_pid() && test_kill_process_group(self.leader).is_ok()
    }

    /// Signals every process of the group.
    pub(crate) fn signal(self, signal: Signal) {
        if self.is_alive() {
            // Fails if the last process ended in this moment, which needs no signal.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Whether the leader's pid still stands for this group. A pid is not recycled while a group
    /// has it as its id, so a group whose leader is gone counts as this one.
    fn owns_its_pid(self) -> bool {
        match start_time(self.leader_pid()) {
            Some(started) => self.started == 0 || self.started == started,
            None => true,
        }
    }

    fn leader_pid(self) -> u32 {
        self.leader.as_raw_pid().cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back() {
        let group = Group::new(4_194_303, u64::MAX - 7).unwrap();
        assert_eq!(Group::from_bytes(group.to_bytes()), Some(group));
    }

    #[test]
    fn ids_that_would_signal_other_groups_are_refused() {
        for leader in [0, 1, u32::MAX, i32::MIN.cast_unsigned()] {
            assert_eq!(Group::new(leader, 5), None);
            let mut bytes = [0; Group::BYTES];
            bytes[..4].copy_from_slice(&leader.to_le_bytes());
            assert_eq!(Group::from_bytes(bytes), None);
        }
    }
}
