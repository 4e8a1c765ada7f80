//! A clock for one daemon that can be set wrong while it runs.

use std::path::PathBuf;

use super::setup::Setup;
use crate::Home;

pub(super) const DAY: i64 = 24 * 60 * 60;

/// The offset of a daemon's clock, in a file that its `clock_gettime` reads.
#[derive(Debug)]
pub(super) struct Clock {
    offset: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// Compiles the library into this home.
    #[expect(clippy::disallowed_methods, reason = "the compiler is waited for")]
    pub(super) fn in_home(home: &Home) -> Self {
        let (source, library) = (home.path().join("clock.c"), home.path().join("clock.so"));
        std::fs::write(&source, include_str!("clock.c")).expect("the source can be written");
        let status = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status()
            .expect("cc can be run");
        assert!(status.success(), "the clock does not compile");
        let offset = home.path().join("clock.offset");
        let clock = Self { offset, library };
        clock.set(0);
        clock
    }

    /// The daemon that is started from this setup lives by this clock.
    pub(super) fn apply(&self, setup: &mut Setup) {
        setup
            .environment("LD_PRELOAD", &self.library.to_string_lossy())
            .environment("CLOCK_FILE", &self.offset.to_string_lossy());
    }

    pub(super) fn set(&self, seconds: i64) {
        let new = self.offset.with_extension("new");
        std::fs::write(&new, seconds.to_string()).expect("the offset can be written");
        std::fs::rename(new, &self.offset).expect("the offset can be replaced");
    }
}
