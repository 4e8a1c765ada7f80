//! Our own files: the config, the data directory, their modes, and the disk they are on.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use config::{Config, Settings};
use rustix::fs::{Access, access, statvfs};

use super::check::{Area, Report, move_away, quoted};
use super::code::Code;

/// Less than this is soon nothing, and a full disk stops every call that may change something.
const LOW_DISK_MB: u64 = 100;

/// The key of the API, in the data directory.
const KEY_FILE: &str = "api_key";

/// The config in force, if it is valid.
pub(super) fn check_config(settings: &Settings, report: &mut Report) -> Option<Config> {
    let file = settings.config_file();
    if !file.exists() {
        let detail = "there is none yet; `mcpproxy serve` writes one";
        report.fine(Area::Config, None, detail);
        return crate::settings::load(settings)
            .ok()
            .map(|loaded| loaded.config);
    }
    let edit = format!("${{EDITOR:-vi}} {}", quoted(file));
    match settings.load() {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                report.problem(
                    Area::Config,
                    Code::ConfigWarning,
                    None,
                    warning.to_string(),
                    edit.clone(),
                );
            }
            if let Some(mode) = open_to_others(file) {
                let cause = format!("{} may hold secrets and has mode {mode:o}", file.display());
                let fix = format!("chmod 600 {}", quoted(file));
                report.problem(Area::Config, Code::ConfigMode, None, cause, fix);
            }
            if report.is_fine(Area::Config) {
                let servers = loaded.config.mcp_servers.len();
                report.fine(
                    Area::Config,
                    None,
                    format!(
                        "{} ({servers} server{})",
                        file.display(),
                        if servers == 1 { "" } else { "s" }
                    ),
                );
            }
            Some(loaded.config)
        }
        Err(error) => {
            let cause = format!("{}: {}", error.what(), error.why());
            report.problem(Area::Config, Code::ConfigInvalid, None, cause, edit);
            None
        }
    }
}

/// Whether the data directory can be used, or made where there is none.
pub(super) fn check_data_dir(data_dir: &Path, report: &mut Report) -> bool {
    let shown = data_dir.display();
    let (cause, fix) = match fs::metadata(data_dir) {
        Ok(found) if !found.is_dir() => {
            (format!("{shown} is not a directory"), move_away(data_dir))
        }
        Ok(_) => match can_write(data_dir) {
            Ok(()) => {
                check_modes(data_dir, report);
                return true;
            }
            Err(error) => (
                format!("{shown} cannot be written: {error}"),
                format!("sudo chown -R \"$USER\" {}", quoted(data_dir)),
            ),
        },
        Err(error) => match why_not_made(data_dir, &error) {
            None => {
                let detail = "there is none yet; it is made when it is needed";
                report.fine(Area::DataDir, None, detail);
                return true;
            }
            Some(problem) => problem,
        },
    };
    report.problem(Area::DataDir, Code::DataDirUnusable, None, cause, fix);
    false
}

/// Why a directory that is not there cannot be made, and what helps.
fn why_not_made(data_dir: &Path, error: &io::Error) -> Option<(String, String)> {
    let shown = data_dir.display();
    // A link that leads nowhere is not there and in the way all the same.
    let mut ancestors = data_dir.ancestors();
    let nearest = ancestors.find(|path| fs::symlink_metadata(path).is_ok())?;
    match fs::metadata(nearest) {
        Ok(found) if found.is_dir() => {
            let denied = can_write(nearest).err()?;
            let cause = format!("{shown} cannot be made in {}: {denied}", nearest.display());
            let fix = format!("sudo install -d -m 700 -o \"$USER\" {}", quoted(data_dir));
            Some((cause, fix))
        }
        Ok(_) => {
            let cause = format!("{} is not a directory", nearest.display());
            Some((cause, move_away(nearest)))
        }
        Err(_) if nearest.is_symlink() => {
            let cause = format!("{} is a link that leads nowhere", nearest.display());
            Some((cause, move_away(nearest)))
        }
        Err(_) => {
            let cause = format!("{shown} cannot be looked at: {error}");
            Some((cause, format!("ls -ld {}", quoted(nearest))))
        }
    }
}

fn can_write(folder: &Path) -> rustix::io::Result<()> {
    access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
}

fn check_modes(data_dir: &Path, report: &mut Report) {
    let shown = data_dir.display();
    if let Some(mode) = open_to_others(data_dir) {
        let cause = format!("{shown} is open to others, mode {mode:o}");
        let fix = format!("chmod 700 {}", quoted(data_dir));
        report.problem(Area::DataDir, Code::DataDirMode, None, cause, fix);
    }
    let key = data_dir.join(KEY_FILE);
    if let Some(mode) = open_to_others(&key) {
        let cause = format!("{} is a secret and has mode {mode:o}", key.display());
        let fix = format!("chmod 600 {}", quoted(&key));
        report.problem(Area::DataDir, Code::KeyFileMode, None, cause, fix);
    }
    if fs::read_to_string(&key).is_ok_and(|text| text.trim().is_empty()) {
        let cause = format!("{} has no key in it", key.display());
        let fix = format!("rm {}", quoted(&key));
        report.problem(Area::DataDir, Code::KeyFileEmpty, None, cause, fix);
    }
    if report.is_fine(Area::DataDir) {
        report.fine(Area::DataDir, None, shown.to_string());
    }
}

pub(super) fn check_disk(data_dir: &Path, report: &mut Report) {
    let existing = data_dir.ancestors().find(|folder| folder.exists());
    let disk = existing.and_then(|folder| Some((folder, statvfs(folder).ok()?)));
    // What is no disk has no blocks.
    let Some((folder, disk)) = disk.filter(|(_, disk)| disk.f_blocks > 0) else {
        report.skipped(Area::Disk, "its size is not known");
        return;
    };
    let free_mb = disk.f_bavail.saturating_mul(disk.f_frsize) / (1024 * 1024);
    if free_mb < LOW_DISK_MB {
        let cause = format!("{free_mb} MiB are left for {}", data_dir.display());
        // Who fills a disk need not be in our directory.
        let fix = format!("df -h {}", quoted(folder));
        report.problem(Area::Disk, Code::DiskLow, None, cause, fix);
    } else {
        report.fine(Area::Disk, None, format!("{free_mb} MiB free"));
    }
}

/// The mode of a file of ours that others can read or write.
fn open_to_others(path: &Path) -> Option<u32> {
    let found = fs::metadata(path).ok()?;
    let mode = found.permissions().mode() & 0o777;
    (mode & 0o077 != 0 && found.uid() == rustix::process::geteuid().as_raw()).then_some(mode)
}
