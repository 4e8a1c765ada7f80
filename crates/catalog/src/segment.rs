//! The index of one upstream's tools: lookup by name, and for each term the tools that have it.
//!
//! A segment knows nothing of other upstreams, so when one of them changes the segments of all
//! the others go into the next snapshot as they are.

use std::sync::Arc;

use policy::{ServerName, ToolName};

use crate::action::Action;
use crate::bm25::PerField;
use crate::document::{Analyzer, Document};
use crate::embedding::Embedding;
use crate::hash::HashMap;
use crate::tool::ToolDefinition;

/// The tools of one upstream, sorted by name, ready to be searched.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) server: ServerName,
    /// As handed in; if the very same list comes again, so does this segment.
    announced: Arc<[Arc<ToolDefinition>]>,
    pub(crate) tools: Box<[Arc<ToolDefinition>]>,
    documents: Box<[Arc<Document>]>,
    /// Side by side, because every search reads all of them.
    pub(crate) embeddings: Box<[Embedding]>,
    pub(crate) actions: Box<[Option<Action>]>,
    positions: HashMap<ToolName, u32>,
    /// The names in lower case.
    pub(crate) folded_names: Box<[Arc<str>]>,
    postings: HashMap<Arc<str>, Vec<Posting>>,
    /// The words of all fields of all tools.
    pub(crate) total_lengths: PerField<u64>,
}

/// One tool that has a term, and how often in which field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) position: u32,
    pub(crate) frequencies: PerField<u8>,
}

impl Segment {
    /// Indexes `announced`, taking over from `previous` the analysis of tools that are the same.
    ///
    /// When an upstream announces a name twice the first one counts: a call could reach only one.
    pub(crate) fn build(
        server: ServerName,
        announced: Arc<[Arc<ToolDefinition>]>,
        previous: Option<&Self>,
        analyzer: &mut Analyzer,
    ) -> Self {
        let mut tools = announced.to_vec();
        tools.sort_by(|a, b| a.id.tool().cmp(b.id.tool()));
        tools.dedup_by(|later, first| later.id.tool() == first.id.tool());
        let (documents, embeddings): (Vec<_>, Vec<_>) = tools
            .iter()
            .map(|tool| {
                previous
                    .and_then(|segment| segment.analysis_of(tool))
                    .unwrap_or_else(|| (Arc::new(analyzer.analyze(tool)), analyzer.embed(tool)))
            })
            .unzip();

        let mut postings: HashMap<Arc<str>, Vec<Posting>> = HashMap::default();
        let mut total_lengths = PerField::default();
        for (position, document) in (0u32..).zip(&documents) {
            for (total, length) in total_lengths.iter_mut().zip(document.lengths) {
                *total += u64::from(length);
            }
            for (term, frequencies) in &document.terms {
                let posting = Posting {
                    position,
                    frequencies: *frequencies,
                };
                postings.entry(Arc::clone(term)).or_default().push(posting);
            }
        }
        let names = || tools.iter().map(|tool| tool.id.tool());
        Self {
            server,
            announced,
            positions: names().cloned().zip(0..).collect(),
            folded_names: names()
                .map(|name| name.as_str().to_lowercase().into())
                .collect(),
            tools: tools.into(),
            actions: documents.iter().map(|document| document.action).collect(),
            documents: documents.into(),
            embeddings: embeddings.into(),
            postings,
            total_lengths,
        }
    }

    pub(crate) fn is_of(&self, announced: &Arc<[Arc<ToolDefinition>]>) -> bool {
        Arc::ptr_eq(&self.announced, announced)
    }

    pub(crate) fn get(&self, name: &ToolName) -> Option<&Arc<ToolDefinition>> {
        self.tools.get(*self.positions.get(name)? as usize)
    }

    /// Every term with the tools that have it, in no particular order of terms.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&Arc<str>, &[Posting])> {
        let terms = self.postings.iter();
        terms.map(|(term, postings)| (term, postings.as_slice()))
    }

    pub(crate) fn lengths(&self) -> impl Iterator<Item = PerField<u32>> {
        self.documents.iter().map(|document| document.lengths)
    }

    fn analysis_of(&self, tool: &Arc<ToolDefinition>) -> Option<(Arc<Document>, Embedding)> {
        let position = *self.positions.get(tool.id.tool())? as usize;
        let known = self.tools.get(position)?;
        if !Arc::ptr_eq(known, tool) && known.raw.get() != tool.raw.get() {
            return None;
        }
        let document = Arc::clone(self.documents.get(position)?);
        Some((document, self.embeddings.get(position)?.clone()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn tools(changed: usize) -> Arc<[Arc<ToolDefinition>]> {
        let tool = |number: usize| {
            let description = if number < changed { "New." } else { "Old." };
            let definition = json!({"name": format!("t{number}"), "description": description});
            let raw = RawValue::from_string(definition.to_string()).unwrap();
            Arc::new(ToolDefinition::parse(&"s".parse().unwrap(), raw).unwrap())
        };
        (0..50).map(tool).collect()
    }

    fn build(tools: Arc<[Arc<ToolDefinition>]>, previous: Option<&Segment>) -> Segment {
        Segment::build(
            "s".parse().unwrap(),
            tools,
            previous,
            &mut Analyzer::default(),
        )
    }

    #[test]
    fn only_tools_that_changed_are_analysed_again() {
        let before = build(tools(0), None);
        // None of the definitions is the same object: the upstream announced the list anew.
        let after = build(tools(10), Some(&before));
        let analysed = after.documents.iter().filter(|document| {
            let known = |other: &Arc<Document>| Arc::ptr_eq(document, other);
            !before.documents.iter().any(known)
        });
        assert_eq!(analysed.count(), 10);
    }

    #[test]
    fn a_tool_that_is_gone_leaves_nothing_behind() {
        let before = build(tools(10), None);
        let after = build(tools(10)[10..].into(), Some(&before));
        assert_eq!(after.tools.len(), 40);
        assert!(before.terms().any(|(term, _)| **term == *"new"));
        assert!(!after.terms().any(|(term, _)| **term == *"new"));
    }
}
