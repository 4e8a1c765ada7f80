//! The measurement as one table.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::driver::Load;

#[derive(Debug)]
pub(super) struct Row {
    upstream: &'static str,
    path: &'static str,
    /// Sorted; empty where nobody stands between the client and the upstream.
    cpu_per_call: Vec<Duration>,
    /// Sorted.
    latencies: Vec<Duration>,
    elapsed: Duration,
}

// === impl Row ===

impl Row {
    pub(super) fn new(
        upstream: &'static str,
        path: &'static str,
        mut cpu_per_call: Vec<Duration>,
        load: Load,
    ) -> Self {
        let mut latencies = load.latencies;
        latencies.sort_unstable();
        cpu_per_call.sort_unstable();
        Self {
            upstream,
            path,
            cpu_per_call,
            latencies,
            elapsed: load.elapsed,
        }
    }

    /// The middle of the rounds: one that another process disturbed does not count.
    fn cpu(&self) -> Option<Duration> {
        self.cpu_per_call.get(self.cpu_per_call.len() / 2).copied()
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of calls are far below 2^52"
    )]
    fn calls_per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }
}

pub(super) fn print(calls: u32, connections: u8, rows: &[Row]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{calls} calls per row, {connections} at a time; arguments and result of 1 kB; times in µs\n"
    )?;
    writeln!(
        out,
        "{:<9} {:<9} {:>9} {:>15} {:>8} {:>8} {:>8} {:>9}",
        "upstream", "path", "CPU/call", "(min to max)", "x floor", "p50", "p99", "calls/s"
    )?;
    for row in rows {
        let floor = rows
            .iter()
            .find(|other| other.upstream == row.upstream && other.path == "floor");
        let cpu = row.cpu().map_or_else(dash, microseconds);
        let range = match (row.cpu_per_call.first(), row.cpu_per_call.last()) {
            (Some(low), Some(high)) => {
                format!("({} to {})", microseconds(*low), microseconds(*high))
            }
            _ => dash(),
        };
        let ratio = match (row.cpu(), floor.and_then(Row::cpu)) {
            (Some(cpu), Some(floor)) => format!("{:.2}", cpu.div_duration_f64(floor)),
            _ => dash(),
        };
        writeln!(
            out,
            "{:<9} {:<9} {:>9} {:>15} {:>8} {:>8} {:>8} {:>9.0}",
            row.upstream,
            row.path,
            cpu,
            range,
            ratio,
            microseconds(percentile(&row.latencies, 50)),
            microseconds(percentile(&row.latencies, 99)),
            row.calls_per_second()
        )?;
    }
    Ok(())
}

/// The value that `percent` of all are not above.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn microseconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1e6)
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let seen: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(percentile(&seen, 50), Duration::from_micros(100));
        assert_eq!(percentile(&seen, 99), Duration::from_micros(198));
        assert_eq!(percentile(&seen[..1], 99), Duration::from_micros(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
