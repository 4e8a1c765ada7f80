//! The codes of problems. Scripts go by them, so one that was released never changes.

macro_rules! codes {
    ($($variant:ident = $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Code {
            $($variant,)*
        }

        impl Code {
            // For tests only: otherwise a code that no check reports would look used.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant,)*];

            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

codes! {
    ConfigInvalid = "CONFIG_INVALID",
    ConfigWarning = "CONFIG_WARNING",
    ConfigMode = "CONFIG_MODE",
    DataDirUnusable = "DATA_DIR_UNUSABLE",
    DataDirMode = "DATA_DIR_MODE",
    KeyFileMode = "KEY_FILE_MODE",
    KeyFileEmpty = "KEY_FILE_EMPTY",
    DiskLow = "DISK_LOW",
    SocketStale = "SOCKET_STALE",
    SocketMode = "SOCKET_MODE",
    DaemonMissing = "DAEMON_MISSING",
    DaemonUnresponsive = "DAEMON_UNRESPONSIVE",
    PortInUse = "PORT_IN_USE",
    PortUnreachable = "PORT_UNREACHABLE",
    StoreUnreadable = "STORE_UNREADABLE",
    StoreTampered = "STORE_TAMPERED",
    StoreNotWritable = "STORE_NOT_WRITABLE",
    PinsUnreadable = "PINS_UNREADABLE",
    ClockWrong = "CLOCK_WRONG",
    ClockBehind = "CLOCK_BEHIND",
    ServersUnknown = "SERVERS_UNKNOWN",
    ServerVariableMissing = "SERVER_VARIABLE_MISSING",
    ServerCommandMissing = "SERVER_COMMAND_MISSING",
    ServerFailed = "SERVER_FAILED",
    ToolLaneDoubtful = "TOOL_LANE_DOUBTFUL",
    UnannotatedUndecided = "UNANNOTATED_UNDECIDED",
    ToolTextDoubtful = "TOOL_TEXT_DOUBTFUL",
    ClientFileBroken = "CLIENT_FILE_BROKEN",
    ClientAddress = "CLIENT_ADDRESS",
    ClientCommandGone = "CLIENT_COMMAND_GONE",
    ClientChangesUnasked = "CLIENT_CHANGES_UNASKED",
    ClientServerTwice = "CLIENT_SERVER_TWICE",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_code_and_no_other() {
        let document = include_str!("../../../../../docs/doctor.md");
        let rows = document.lines().filter_map(|line| {
            let (code, _) = line.strip_prefix("| `")?.split_once('`')?;
            code.starts_with(|first: char| first.is_ascii_uppercase())
                .then_some(code)
        });
        let known: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(rows.collect::<Vec<_>>(), known);
    }
}
