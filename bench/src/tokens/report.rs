//! What was counted, as a few tables.

use std::io::Write;

use anyhow::Result;
use serde_json::Value;

use super::counter::Counter;
use super::task::Spent;

/// What ten hits and our own list may cost at most.
const MOST_COMPACT: usize = 900;
const MOST_AUTO: usize = 2_600;
const MOST_OWN: usize = 2_000;

/// Turns of a task in which everything so far is read: with all tools loaded the model decides and
/// then answers; with a search it decides three times, or four if it wants a description.
const TURNS_LOADED: usize = 2;

#[derive(Debug)]
pub(super) struct Report {
    silent: Vec<String>,
    servers: usize,
    tools: usize,
    /// Name, description and schema of every tool, which is what a model is given of them.
    loaded: usize,
    own: usize,
    own_loaded: usize,
    spent: Vec<Spent>,
}

impl Report {
    pub(super) fn new(
        counter: &Counter,
        silent: Vec<String>,
        own: &Value,
        tools: &[(String, Value)],
    ) -> Self {
        let mut servers: Vec<_> = tools
            .iter()
            .filter_map(|(name, _)| name.split(':').next())
            .collect();
        servers.dedup();
        let loaded = |definition: &Value| {
            let shown = ["name", "description", "inputSchema"].map(|member| &definition[member]);
            shown
                .iter()
                .map(|member| counter.json(member).unwrap_or_default())
                .sum::<usize>()
        };
        Self {
            silent,
            servers: servers.len(),
            tools: tools.len(),
            loaded: tools.iter().map(|(_, definition)| loaded(definition)).sum(),
            own: counter.json(own).unwrap_or_default(),
            own_loaded: own["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .map(loaded)
                .sum(),
            spent: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, spent: Spent) {
        self.spent.push(spent);
    }

    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        for silent in &self.silent {
            writeln!(out, "not counted: {silent}")?;
        }
        writeln!(
            out,
            "{} servers, {} tools, {} tasks; tokens of cl100k",
            self.servers,
            self.tools,
            self.spent.len()
        )?;
        self.write_answers(out)?;
        self.write_tasks(out)
    }

    fn write_answers(&self, out: &mut impl Write) -> Result<()> {
        let ten: Vec<_> = self
            .spent
            .iter()
            .filter_map(|spent| spent.ten_hits.as_ref())
            .collect();
        writeln!(
            out,
            "\n{:<34}{:>8}{:>8}{:>8}",
            "", "median", "p90", "at most"
        )?;
        let rows = [
            (
                "ten hits, compact",
                ten.iter().map(|hits| hits.compact).collect(),
                Some(MOST_COMPACT),
            ),
            (
                "ten hits, auto",
                ten.iter().map(|hits| hits.auto).collect(),
                Some(MOST_AUTO),
            ),
            (
                "ten hits, full",
                ten.iter().map(|hits| hits.full).collect(),
                None,
            ),
            ("our own tools/list", vec![self.own], Some(MOST_OWN)),
            ("every tool loaded", vec![self.loaded], None),
        ];
        for (what, counts, most) in rows {
            let counts = Counts::new(counts);
            let most = most.map_or_else(String::new, |most| most.to_string());
            writeln!(
                out,
                "{what:<34}{:>8}{:>8}{most:>8}",
                counts.at(50),
                counts.at(90)
            )?;
        }
        writeln!(out, "{} of the searches had ten hits", ten.len())?;
        Ok(())
    }

    /// A whole task. Each turn reads all that came before it, so an answer costs once for each turn
    /// that follows.
    fn write_tasks(&self, out: &mut impl Write) -> Result<()> {
        let found: Vec<_> = self.spent.iter().filter(|spent| spent.found).collect();
        let searched = Counts::new(found.iter().map(|spent| self.context(spent)).collect());
        let read = Counts::new(found.iter().map(|spent| self.read(spent)).collect());
        let described = found
            .iter()
            .filter(|spent| spent.describe.is_some())
            .count();
        writeln!(
            out,
            "\n{:<34}{:>8}{:>10}{:>8}",
            "a whole task, median", "context", "all turns", "turns"
        )?;
        writeln!(
            out,
            "{:<34}{:>8}{:>10}{:>8}",
            "every tool loaded",
            self.loaded,
            TURNS_LOADED * self.loaded,
            TURNS_LOADED
        )?;
        writeln!(
            out,
            "{:<34}{:>8}{:>10}{:>8}",
            "search, describe if needed, call",
            searched.at(50),
            read.at(50),
            "3 to 4"
        )?;
        writeln!(
            out,
            "{} of {} tasks found their tool, {described} of them needed a description",
            found.len(),
            self.spent.len()
        )?;
        Ok(())
    }

    /// What stands in the context when the task is done.
    fn context(&self, spent: &Spent) -> usize {
        self.own_loaded + spent.search + spent.describe.unwrap_or_default() + spent.call
    }

    /// What is read over all turns.
    fn read(&self, spent: &Spent) -> usize {
        let mut context = self.own_loaded;
        let mut read = context;
        for step in [Some(spent.search), spent.describe, Some(spent.call)]
            .into_iter()
            .flatten()
        {
            context += step;
            read += context;
        }
        read
    }
}

/// Sorted.
struct Counts(Vec<usize>);

impl Counts {
    fn new(mut counts: Vec<usize>) -> Self {
        counts.sort_unstable();
        Self(counts)
    }

    fn at(&self, percent: usize) -> usize {
        let last = self.0.len().saturating_sub(1);
        self.0
            .get(last * percent / 100)
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(spent: Vec<Spent>) -> Report {
        let counter = Counter::new().unwrap();
        let own = json!({"tools": [{"name": "a", "description": "b", "inputSchema": {}}]});
        let tools = [("s:t".to_owned(), json!({"name": "t", "description": "c"}))];
        let mut report = Report::new(&counter, vec!["x: gone".to_owned()], &own, &tools);
        for spent in spent {
            report.add(spent);
        }
        report
    }

    #[test]
    fn an_answer_is_paid_for_in_every_turn_that_follows() {
        let report = report(Vec::new());
        let spent = Spent {
            search: 100,
            describe: Some(10),
            call: 1,
            found: true,
            ..Spent::default()
        };
        let own = report.own_loaded;
        assert_eq!(report.context(&spent), own + 111);
        assert_eq!(
            report.read(&spent),
            own + (own + 100) + (own + 110) + (own + 111)
        );
    }

    #[test]
    fn it_says_what_was_not_counted_and_works_without_any_task() {
        let mut out = Vec::new();
        report(Vec::new()).write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("not counted: x: gone"), "{text}");
        assert!(text.contains("1 servers, 1 tools, 0 tasks"), "{text}");
    }

    #[test]
    fn percentiles_are_of_the_sorted_counts() {
        let counts = Counts::new(vec![5, 1, 3]);
        assert_eq!((counts.at(50), counts.at(90), counts.at(100)), (3, 3, 5));
        assert_eq!(Counts::new(Vec::new()).at(50), 0);
    }
}
