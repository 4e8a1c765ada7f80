//! What is measured: one case is one setting that all paths are compared in.

use std::fmt;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::tool::{Lane, Size, Tool};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Upstream {
    Stdio,
    Http,
}

/// The CPUs that clients, hop and upstream may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cores {
    /// As many as this process may.
    All,
    /// The same one for everything. Only measured for one client.
    One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) cores: Cores,
    pub(super) upstream: Upstream,
    pub(super) clients: usize,
    pub(super) size: Size,
    pub(super) lane: Lane,
}

/// Which cases to measure. Naming any of clients, sizes and lanes replaces the default choice by
/// the product of the three, with 1 client, 1k and read for those that are not named.
#[derive(Debug, Args)]
pub(super) struct Choice {
    /// Clients that call at the same time [default: 1,16,64]
    #[arg(long, value_delimiter = ',', value_name = "N,N")]
    clients: Vec<usize>,
    /// Sizes of results [default: 1k,100k,5m]
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<Size>,
    /// Lanes of the calls [default: read,write]
    #[arg(long, value_delimiter = ',')]
    lanes: Vec<Lane>,
    /// Kinds of upstreams
    #[arg(long, value_delimiter = ',', default_value = "stdio,http")]
    upstreams: Vec<Upstream>,
    /// CPUs; `one` pins everything to the same and is measured for one client only
    #[arg(long, value_delimiter = ',', default_value = "all,one")]
    cores: Vec<Cores>,
}

// === impl Upstream ===

impl Upstream {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        }
    }
}

// === impl Case ===

impl Case {
    pub(super) fn tool(self) -> Tool {
        Tool {
            lane: self.lane,
            size: self.size,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (upstream, size) = (self.upstream.name(), self.size.name());
        let plural = if self.clients == 1 { "" } else { "s" };
        write!(
            formatter,
            "{upstream}, {} client{plural}, {size}, {}",
            self.clients,
            self.lane.name()
        )?;
        match self.cores {
            Cores::All => Ok(()),
            Cores::One => write!(formatter, ", pinned to one core"),
        }
    }
}

// === impl Choice ===

impl Choice {
    pub(super) fn cases(&self, cores: Cores) -> Vec<Case> {
        if !self.cores.contains(&cores) {
            return Vec::new();
        }
        let loads = self.loads();
        let loads = loads
            .iter()
            .filter(|load| cores == Cores::All || load.0 == 1);
        let of_load = |&(clients, size, lane): &_| {
            self.upstreams.iter().map(move |&upstream| Case {
                cores,
                upstream,
                clients,
                size,
                lane,
            })
        };
        loads.flat_map(of_load).collect()
    }

    fn loads(&self) -> Vec<(usize, Size, Lane)> {
        if self.clients.is_empty() && self.sizes.is_empty() && self.lanes.is_empty() {
            return vec![
                (1, Size::Small, Lane::Read),
                (16, Size::Small, Lane::Read),
                (64, Size::Small, Lane::Read),
                (1, Size::Small, Lane::Write),
                (16, Size::Small, Lane::Write),
                (1, Size::Large, Lane::Read),
                (1, Size::Huge, Lane::Read),
            ];
        }
        let mut loads = Vec::new();
        for &lane in or(&self.lanes, &[Lane::Read]) {
            for &size in or(&self.sizes, &[Size::Small]) {
                for &clients in or(&self.clients, &[1]) {
                    loads.push((clients.clamp(1, 1_000), size, lane));
                }
            }
        }
        loads
    }
}

fn or<'a, T>(named: &'a [T], default: &'a [T]) -> &'a [T] {
    if named.is_empty() { default } else { named }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        choice: Choice,
    }

    fn cases(arguments: &str, cores: Cores) -> Vec<String> {
        let arguments = std::iter::once("x").chain(arguments.split_whitespace());
        let cases = Options::parse_from(arguments).choice.cases(cores);
        cases.iter().map(Case::to_string).collect()
    }

    #[test]
    fn named_values_are_multiplied_and_only_one_client_is_pinned() {
        assert_eq!(cases("", Cores::All).len(), 14);
        assert_eq!(cases("", Cores::One).len(), 8);
        let named = "--clients 1,16 --sizes 100k --upstreams stdio";
        assert_eq!(
            cases(named, Cores::All),
            [
                "stdio, 1 client, 100k, read",
                "stdio, 16 clients, 100k, read"
            ]
        );
        assert_eq!(
            cases(named, Cores::One),
            ["stdio, 1 client, 100k, read, pinned to one core"]
        );
        assert_eq!(cases("--cores all", Cores::One), [""; 0]);
    }
}
