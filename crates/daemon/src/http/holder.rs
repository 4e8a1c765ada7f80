//! Which process listens on an address, as far as `/proc` tells.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

const LISTENING: &str = "0A";

/// A process that listens where we want to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
}

impl Holder {
    /// Looks for the process that keeps others from `address`. Processes of other users cannot be
    /// looked into.
    pub fn of(address: SocketAddr) -> Option<Self> {
        let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| listeners(&table, address.port()))
            .map(|inode| format!("socket:[{inode}]"))
            .collect();
        if sockets.is_empty() {
            return None;
        }
        let processes = fs::read_dir("/proc").ok()?;
        processes.filter_map(Result::ok).find_map(|process| {
            let pid: u32 = process.file_name().to_str()?.parse().ok()?;
            let holds = has_open(&process.path(), &sockets);
            holds.then(|| Self {
                pid,
                name: name_of(&process.path()),
            })
        })
    }
}

/// For a message, after the address.
pub fn held_by(holder: Option<&Holder>) -> String {
    holder
        .map(|Holder { pid, name }| format!(", which process {pid} ({name}) uses"))
        .unwrap_or_default()
}

/// The inodes of the sockets that listen on this port.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let port = format!("{port:04X}");
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let listens = local.rsplit(':').next() == Some(&port) && *state == LISTENING;
        listens.then(|| (*inode).to_owned())
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

fn has_open(process: &Path, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    files.filter_map(Result::ok).any(|file| {
        let target = fs::read_link(file.path());
        target.is_ok_and(|target| sockets.iter().any(|socket| target == Path::new(socket)))
    })
}

fn name_of(process: &Path) -> String {
    let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
    name.trim().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = Holder::of(listener.local_addr().unwrap()).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert!(held_by(Some(&holder)).contains(&format!("process {}", holder.pid)));
    }

    #[test]
    fn tables_that_make_no_sense_name_nobody() {
        for table in [
            "",
            "sl\n",
            "sl\n0: 1\n",
            "a\n0: 0100007F:1F90 0 01 a b c d e 7",
        ] {
            assert_eq!(listeners(table, 0x1F90), [""; 0]);
        }
        let table = "a\n0: 0100007F:1F90 0 0A a b c d e 7";
        assert_eq!(listeners(table, 0x1F90), ["7"]);
    }
}
