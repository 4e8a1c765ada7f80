//! Protocol revisions. Those up to 2025-11-25 begin with `initialize` and are called legacy; from
//! 2026-07-28 on every request stands by itself, and the revision is called modern.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

#[derive(Debug, thiserror::Error)]
#[error("unknown protocol version")]
pub struct UnknownVersion;

impl ProtocolVersion {
    pub const LEGACY: [Self; 4] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
    ];
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    pub const MODERN: Self = Self::V2026_07_28;

    /// What an HTTP server assumes when a request after `initialize` names no version.
    pub const ASSUMED: Self = Self::V2025_03_26;

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The version a server answers `initialize` with: the one asked for where it is known, else
    /// the newest that knows a handshake; the client then decides whether it can live with it.
    pub fn negotiate(requested: &str) -> Self {
        requested
            .parse()
            .ok()
            .filter(|version: &Self| !version.is_modern())
            .unwrap_or(Self::LATEST_LEGACY)
    }

    /// Whether requests of this version stand by themselves, without a handshake or a session.
    pub fn is_modern(self) -> bool {
        self >= Self::MODERN
    }

    /// Batches were part of the protocol until 2025-03-26 and left it with 2025-06-18.
    pub fn allows_batches(self) -> bool {
        self <= Self::V2025_03_26
    }
}

impl FromStr for ProtocolVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::LEGACY
            .into_iter()
            .chain([Self::MODERN])
            .find(|version| version.as_str() == text)
            .ok_or(UnknownVersion)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_never_ends_in_a_version_that_has_none() {
        assert_eq!(
            ProtocolVersion::negotiate("2026-07-28"),
            ProtocolVersion::LATEST_LEGACY
        );
        assert_eq!(
            ProtocolVersion::negotiate("2025-03-26"),
            ProtocolVersion::V2025_03_26
        );
        assert_eq!(
            ProtocolVersion::negotiate("1999-01-01"),
            ProtocolVersion::LATEST_LEGACY
        );
    }

    #[test]
    fn every_version_is_read_as_it_is_written() {
        for version in ProtocolVersion::LEGACY
            .into_iter()
            .chain([ProtocolVersion::MODERN])
        {
            assert_eq!(
                version.as_str().parse::<ProtocolVersion>().ok(),
                Some(version)
            );
            assert_eq!(version.is_modern(), version == ProtocolVersion::MODERN);
        }
    }
}
