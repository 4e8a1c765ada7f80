//! The tools of the echo upstream: one for each lane and size of result.

use std::sync::LazyLock;

use clap::ValueEnum;
use serde::Serialize;

/// The lane a tool belongs to by its annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Lane {
    Read,
    Write,
}

/// The size of a result, in bytes as it stands in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
pub(crate) enum Size {
    #[value(name = "1k")]
    #[serde(rename = "1k")]
    Small,
    #[value(name = "100k")]
    #[serde(rename = "100k")]
    Large,
    #[value(name = "5m")]
    #[serde(rename = "5m")]
    Huge,
}

/// A tool that answers at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) lane: Lane,
    pub(crate) size: Size,
}

static SMALL: LazyLock<String> = LazyLock::new(|| result_of(1_000));
static LARGE: LazyLock<String> = LazyLock::new(|| result_of(100_000));
static HUGE: LazyLock<String> = LazyLock::new(|| result_of(5_000_000));

// === impl Lane ===

impl Lane {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

// === impl Size ===

impl Size {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "1k",
            Self::Large => "100k",
            Self::Huge => "5m",
        }
    }

    /// How many calls with the smallest result take about as long as one with this.
    pub(crate) fn weight(self) -> usize {
        match self {
            Self::Small => 1,
            Self::Large => 5,
            Self::Huge => 100,
        }
    }
}

// === impl Tool ===

impl Tool {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of_lane = |lane| {
            Size::value_variants()
                .iter()
                .map(move |&size| Self { lane, size })
        };
        Lane::value_variants().iter().copied().flat_map(of_lane)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let (lane, size) = name.split_once('_')?;
        Self::all().find(|tool| tool.lane.name() == lane && tool.size.name() == size)
    }

    pub(crate) fn name(self) -> String {
        format!("{}_{}", self.lane.name(), self.size.name())
    }

    /// The `result` of every call, as JSON.
    pub(crate) fn result(self) -> &'static str {
        match self.size {
            Size::Small => &SMALL,
            Size::Large => &LARGE,
            Size::Huge => &HUGE,
        }
    }
}

fn result_of(bytes: usize) -> String {
    const LINE: &str = r"An answer as servers give it, a line of text at a time.\n";
    let text = LINE.repeat(bytes / LINE.len());
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_their_names_and_have_the_size_they_say() {
        for tool in Tool::all() {
            assert_eq!(Tool::named(&tool.name()), Some(tool));
        }
        assert_eq!(Tool::named("read_2k"), None);
        let lengths = Size::value_variants().iter().map(|&size| {
            let lane = Lane::Read;
            Tool { lane, size }.result().len()
        });
        for (length, wanted) in lengths.zip([1_000, 100_000, 5_000_000]) {
            assert!(length.abs_diff(wanted) < 100, "{length}");
        }
    }
}
