//! What the parent tells the watchdog process. It acknowledges a group by sending it back.

use crate::group::Group;

#[derive(Debug, Clone, Copy)]
pub(super) enum Message {
    /// End this group when the parent is gone.
    Watch(Group),
    /// The group has ended.
    Forget(Group),
}

const WATCH: u8 = b'+';
const FORGET: u8 = b'-';

// === impl Message ===

impl Message {
    pub(super) const BYTES: usize = 1 + Group::BYTES;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let (kind, group) = match self {
            Self::Watch(group) => (WATCH, group),
            Self::Forget(group) => (FORGET, group),
        };
        let mut bytes = [kind; Self::BYTES];
        bytes[1..].copy_from_slice(&group.to_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let (kind, group) = bytes.split_first()?;
        let group = Group::from_bytes(*group.first_chunk()?)?;
        match *kind {
            WATCH => Some(Self::Watch(group)),
            FORGET => Some(Self::Forget(group)),
            _ => None,
        }
    }
}
