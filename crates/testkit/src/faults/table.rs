//! The table for people.

use super::case::Row;

pub(super) fn of(rows: &[Row]) -> String {
    let mut text = String::from("| id | tried | verdict | s | figures |\n|---|---|---|---|---|\n");
    for row in rows {
        let (verdict, figures) = match &row.outcome {
            Ok(report) if report.applicable => ("pass", report.figures.join(" · ")),
            Ok(report) => ("n/a", report.figures.join(" · ")),
            Err(_) => ("FAIL", "see below".to_owned()),
        };
        let took = row.took.as_secs_f64();
        text += &format!(
            "| {} | {} | {verdict} | {took:.1} | {figures} |\n",
            row.id, row.tried
        );
    }
    for row in rows {
        if let Err(reason) = &row.outcome {
            text += &format!("\n{} FAIL: {}\n", row.id, shortened(reason));
        }
    }
    text + "\n" + &counts(rows)
}

/// One line while the suite runs.
pub(super) fn progress(row: &Row) -> String {
    let verdict = if row.failed() { "FAIL" } else { "ok" };
    let took = row.took.as_secs_f64();
    let line = format!("{verdict:<5}{:<5}{took:>6.1} s  {}", row.id, row.tried);
    match &row.outcome {
        Ok(_) => line,
        Err(reason) => format!("{line}\n           {}", shortened(reason)),
    }
}

fn counts(rows: &[Row]) -> String {
    let groups = [
        ('R', "faults"),
        ('T', "threats"),
        ('F', "findings"),
        ('X', "other attacks"),
    ];
    let groups = groups.iter().filter_map(|(letter, name)| {
        let of_group = |row: &&Row| row.id.starts_with(*letter) && row.applies();
        let all = rows.iter().filter(of_group).count();
        let passed = rows
            .iter()
            .filter(of_group)
            .filter(|row| !row.failed())
            .count();
        (all > 0).then(|| format!("{name} {passed}/{all}"))
    });
    groups.collect::<Vec<_>>().join(", ")
}

fn shortened(reason: &str) -> String {
    let mut text: String = reason.chars().take(1_500).collect();
    if text.len() < reason.len() {
        text.push('…');
    }
    text.replace('\n', "\n  ")
}

impl Row {
    pub(super) fn failed(&self) -> bool {
        self.outcome.is_err()
    }

    fn applies(&self) -> bool {
        self.outcome
            .as_ref()
            .map_or(true, |report| report.applicable)
    }
}
