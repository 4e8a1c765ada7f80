//! One path in one case, and how it compares with the floor.

use serde::Serialize;

use super::case::Case;
use super::paths::{DIRECT, FLOOR};
use crate::load::{Figures, Measured, Spread};

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) path: String,
    pub(super) measured: Measured,
    /// How much later the median answer comes than from the upstream itself, in µs.
    pub(super) added_p50: Option<f64>,
    pub(super) ratios: Ratios,
}

/// A path divided by the floor, round by round.
#[derive(Debug, Default, Serialize)]
pub(super) struct Ratios {
    pub(super) added_p50: Option<Spread>,
    pub(super) p50: Option<Spread>,
    pub(super) p99: Option<Spread>,
    pub(super) calls_per_second: Option<Spread>,
    pub(super) cpu: Option<Spread>,
}

/// The rows of one case, from what was measured of each path.
pub(super) fn rows(case: Case, paths: Vec<(String, Measured)>) -> Vec<Row> {
    let find = |wanted: &str| {
        let found = paths.iter().find(|(path, _)| path == wanted);
        found.map(|(_, measured)| measured.clone())
    };
    let (direct, floor) = (find(DIRECT), find(FLOOR));
    let row = |(path, measured): (String, Measured)| {
        let direct = direct.as_ref().filter(|_| path != DIRECT);
        Row {
            case,
            added_p50: direct.map(|direct| measured.all.p50 - direct.all.p50),
            ratios: match (direct, &floor) {
                (Some(direct), Some(floor)) => Ratios::of(&measured, direct, floor),
                _ => Ratios::default(),
            },
            path,
            measured,
        }
    };
    paths.into_iter().map(row).collect()
}

// === impl Ratios ===

impl Ratios {
    fn of(path: &Measured, direct: &Measured, floor: &Measured) -> Self {
        let by_round = |ratio: fn(&Figures, &Figures, &Figures) -> Option<f64>| {
            let others = direct.rounds.iter().zip(&floor.rounds);
            let rounds = path.rounds.iter().zip(others);
            Spread::of(rounds.filter_map(|(path, (direct, floor))| ratio(path, direct, floor)))
        };
        Self {
            added_p50: by_round(|path, direct, floor| {
                let added = floor.p50 - direct.p50;
                // A floor that seems to add nothing was disturbed, or the upstream was.
                (added > 0.0).then(|| (path.p50 - direct.p50) / added)
            }),
            p50: by_round(|path, _, floor| Some(path.p50 / floor.p50)),
            p99: by_round(|path, _, floor| Some(path.p99 / floor.p99)),
            calls_per_second: by_round(|path, _, floor| {
                Some(path.calls_per_second / floor.calls_per_second)
            }),
            cpu: by_round(|path, _, floor| Some(path.cpu? / floor.cpu?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::case::{Cores, Upstream};
    use crate::tool::{Lane, Size};

    fn measured(p50s: [f64; 3], cpu: Option<f64>) -> Measured {
        let of = |p50: f64| Figures {
            calls: 10,
            p50,
            p99: 10.0 * p50,
            calls_per_second: 1e6 / p50,
            cpu,
            user: None,
            system: None,
        };
        Measured {
            all: of(p50s[1]),
            rounds: p50s.map(of).to_vec(),
        }
    }

    #[test]
    fn a_path_is_compared_with_the_floor_of_the_same_round() {
        let case = Case {
            cores: Cores::All,
            upstream: Upstream::Stdio,
            clients: 1,
            size: Size::Small,
            lane: Lane::Read,
        };
        let paths = vec![
            (DIRECT.to_owned(), measured([10.0, 10.0, 20.0], None)),
            (FLOOR.to_owned(), measured([20.0, 30.0, 20.0], Some(5.0))),
            ("path".to_owned(), measured([30.0, 40.0, 50.0], Some(15.0))),
        ];
        let rows = rows(case, paths);
        let [direct, floor, path] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!(direct.added_p50, None);
        assert_eq!(direct.ratios.p50, None);
        assert_eq!(floor.added_p50, Some(20.0));
        assert_eq!(path.added_p50, Some(30.0));
        // In the third round the floor seems to have added nothing.
        assert_eq!(
            path.ratios.added_p50,
            Some(Spread {
                median: 2.0,
                min: 1.5,
                max: 2.0
            })
        );
        assert_eq!(path.ratios.cpu, Spread::of([3.0]));
    }
}
