//! The integers that stand for words in the database. They are on disk: never renumber them.

use policy::{DataSensitivity, OperationType, Provenance, Tier, ToolVariant};

use crate::words::{RecordType, Source, Status};

pub(super) trait Code: Copy + 'static {
    fn code(self) -> i64;
    fn from_code(code: i64) -> Option<Self>;
}

macro_rules! codes {
    ($name:ident { $($variant:ident = $code:literal),+ $(,)? }) => {
        impl Code for $name {
            fn code(self) -> i64 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }

            fn from_code(code: i64) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

codes!(RecordType {
    ToolCall = 1,
    PolicyDecision = 2,
    QuarantineChange = 3,
    ServerChange = 4,
    ConfigChange = 5,
    System = 6,
});
codes!(Source { Mcp = 1, Cli = 2, Api = 3 });
codes!(Status { Pending = 1, Success = 2, Error = 3, Blocked = 4, Cancelled = 5, Interrupted = 6 });
codes!(OperationType { Read = 1, Write = 2, Destructive = 3 });
codes!(DataSensitivity { Public = 1, Internal = 2, Private = 3, Unknown = 4 });
codes!(ToolVariant { Read = 1, Write = 2, Destructive = 3 });
codes!(Tier { ReadOnly = 1, Write = 2, SoftDelete = 3, Destructive = 4 });
codes!(Provenance { Override = 1, Declared = 2, Audited = 3, Unannotated = 4, Pinned = 5 });

/// SQLite's integers are signed; bits are kept, and sizes never get near the difference.
pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}
