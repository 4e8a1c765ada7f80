//! Holds this thread, and all processes it starts from then on, to one CPU.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// While it lives, the thread that made it runs on one CPU.
#[derive(Debug)]
pub(crate) struct PinnedToOneCpu {
    allowed_before: CpuSet,
}

impl PinnedToOneCpu {
    pub(crate) fn new() -> Result<Self> {
        let allowed_before = sched_getaffinity(None)?;
        // The last one: interrupts are mostly handled by the first.
        let cpu = (0..CpuSet::MAX_CPU).rfind(|&cpu| allowed_before.is_set(cpu));
        let mut one = CpuSet::new();
        one.set(cpu.context("no CPU is allowed")?);
        sched_setaffinity(None, &one)?;
        Ok(Self { allowed_before })
    }
}

impl Drop for PinnedToOneCpu {
    fn drop(&mut self) {
        // These CPUs were allowed before; if they are no longer, there is nothing to go back to.
        let _ = sched_setaffinity(None, &self.allowed_before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_held_to_one_cpu_until_the_guard_is_dropped() {
        let before = sched_getaffinity(None).unwrap();
        let pinned = PinnedToOneCpu::new().unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
