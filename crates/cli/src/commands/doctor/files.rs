//! Our own files: the config, the data directory, their modes, and the disk they are on.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use config::{Config, Settings};
use rustix::fs::{Access, access, statvfs};

use super::check::{Area, Report, quoted};

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
                    "CONFIG_WARNING",
                    None,
                    warning.to_string(),
                    edit.clone(),
                );
            }
            if let Some(mode) = open_to_others(file) {
                let cause = format!("{} may hold secrets and has mode {mode:o}", file.display());
                let fix = format!("chmod 600 {}", quoted(file));
                report.problem(Area::Config, "CONFIG_MODE", None, cause, fix);
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
            report.problem(Area::Config, "CONFIG_INVALID", None, cause, edit);
            None
        }
    }
}

pub(super) fn check_data_dir(data_dir: &Path, report: &mut Report) {
    let found = match fs::metadata(data_dir) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            report.fine(
                Area::DataDir,
                None,
                "there is none yet; it is made when it is needed",
            );
            return;
        }
        Err(error) => {
            let parent = data_dir.parent().unwrap_or(data_dir);
            let fix = format!("ls -ld {}", quoted(parent));
            report.problem(
                Area::DataDir,
                "DATA_DIR_UNUSABLE",
                None,
                error.to_string(),
                fix,
            );
            return;
        }
    };
    let shown = data_dir.display();
    if !found.is_dir()
        || access(
            data_dir,
            Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK,
        )
        .is_err()
    {
        let cause = format!("{shown} is not a directory that this user can write to");
        let fix = format!("sudo chown -R \"$USER\" {}", quoted(data_dir));
        report.problem(Area::DataDir, "DATA_DIR_UNUSABLE", None, cause, fix);
        return;
    }
    if let Some(mode) = open_to_others(data_dir) {
        let cause = format!("{shown} is open to others, mode {mode:o}");
        let fix = format!("chmod 700 {}", quoted(data_dir));
        report.problem(Area::DataDir, "DATA_DIR_MODE", None, cause, fix);
    }
    let key = data_dir.join(KEY_FILE);
    if let Some(mode) = open_to_others(&key) {
        let cause = format!("{} is a secret and has mode {mode:o}", key.display());
        let fix = format!("chmod 600 {}", quoted(&key));
        report.problem(Area::DataDir, "KEY_FILE_MODE", None, cause, fix);
    }
    if report.is_fine(Area::DataDir) {
        report.fine(Area::DataDir, None, shown.to_string());
    }
}

pub(super) fn check_disk(data_dir: &Path, report: &mut Report) {
    let existing = data_dir.ancestors().find(|folder| folder.exists());
    let Some(Ok(disk)) = existing.map(statvfs) else {
        report.skipped(Area::Disk, "its size is not known");
        return;
    };
    let free_mb = disk.f_bavail.saturating_mul(disk.f_frsize) / (1024 * 1024);
    if free_mb < LOW_DISK_MB {
        let cause = format!("{free_mb} MiB are left for {}", data_dir.display());
        report.problem(
            Area::Disk,
            "DISK_LOW",
            None,
            cause,
            format!("du -ah {} | sort -h | tail", quoted(data_dir)),
        );
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
