//! Every matching record as one stream of bytes, in chunks that are made when they are asked for,
//! so that an export of any length takes the same memory.

mod csv;

#[doc(hidden)]
pub use csv::write_line;

use std::fmt;
use std::sync::Arc;

use crate::filter::{Filter, FilterError};
use crate::page::Cursor;
use crate::record::Record;
use crate::store::{ActivityStore, StoreError};
use crate::words::{Word, words};

/// How many records make a chunk; with bodies they are much larger.
const RECORDS_PER_CHUNK: u32 = 500;
const RECORDS_WITH_BODIES_PER_CHUNK: u32 = 50;

words! {
    ExportFormat {
        Json = "json",
        JsonLines = "jsonl",
        Csv = "csv",
    }
}

/// What to export.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    pub filter: Filter,
    pub format: ExportFormat,
    pub include_bodies: bool,
    /// Nothing means everything.
    pub limit: Option<u64>,
}

/// A running export, newest records first.
pub struct Export {
    store: Arc<dyn ActivityStore>,
    request: ExportRequest,
    after: Option<Cursor>,
    written: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Beginning,
    Running,
    Ended,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a record cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
}

impl ExportFormat {
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Word::parse(text).ok_or_else(|| FilterError::UnknownWord {
            parameter: "format",
            value: text.to_owned(),
            allowed: Self::ALL.iter().map(|word| word.as_str()).collect(),
        })
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::JsonLines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }
}

impl Export {
    pub(crate) fn new(store: Arc<dyn ActivityStore>, request: ExportRequest) -> Self {
        Self {
            store,
            request,
            after: None,
            written: 0,
            state: State::Beginning,
        }
    }

    /// How many records have been handed out.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The next piece of the file, or nothing when it is complete.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ExportError> {
        if self.state == State::Ended {
            return Ok(None);
        }
        let wanted = self.wanted();
        let records = if wanted == 0 {
            Vec::new()
        } else {
            let filter = self.request.filter.clone();
            self.store
                .scan(filter, self.after, wanted, self.request.include_bodies)
                .await?
        };
        let last_chunk = records.len() < wanted as usize || wanted == 0;
        let mut chunk = Vec::new();
        if self.state == State::Beginning {
            self.open(&mut chunk);
        }
        for record in &records {
            self.write(&mut chunk, record)?;
        }
        self.after = records
            .last()
            .map(|record| Cursor::after(record.id))
            .or(self.after);
        self.state = State::Running;
        if last_chunk {
            self.close(&mut chunk);
            self.state = State::Ended;
        }
        Ok(Some(chunk))
    }

    fn wanted(&self) -> u32 {
        let chunk = if self.request.include_bodies {
            RECORDS_WITH_BODIES_PER_CHUNK
        } else {
            RECORDS_PER_CHUNK
        };
        let left = self
            .request
            .limit
            .map_or(u64::MAX, |limit| limit.saturating_sub(self.written));
        u32::try_from(left).unwrap_or(u32::MAX).min(chunk)
    }

    fn open(&self, chunk: &mut Vec<u8>) {
        match self.request.format {
            ExportFormat::Json => chunk.push(b'['),
            ExportFormat::JsonLines => {}
            ExportFormat::Csv => csv::write_header(chunk, self.request.include_bodies),
        }
    }

    fn write(&mut self, chunk: &mut Vec<u8>, record: &Record) -> Result<(), ExportError> {
        match self.request.format {
            ExportFormat::Json => {
                chunk.extend_from_slice(if self.written == 0 { b"\n" } else { b",\n" });
                serde_json::to_writer(chunk, record)?;
            }
            ExportFormat::JsonLines => {
                serde_json::to_writer(&mut *chunk, record)?;
                chunk.push(b'\n');
            }
            ExportFormat::Csv => csv::write_record(chunk, record, self.request.include_bodies),
        }
        self.written += 1;
        Ok(())
    }

    fn close(&self, chunk: &mut Vec<u8>) {
        if self.request.format == ExportFormat::Json {
            chunk.extend_from_slice(b"\n]\n");
        }
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Export")
            .field("request", &self.request)
            .field("written", &self.written)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
