//! `mcpproxy activity watch`: records as they are made, until Ctrl-C.

use std::time::Duration;

use axum::body::Body;
use config::Settings;
use http_body_util::BodyExt;
use mcp::sse::{Event, EventParser};
use serde_json::Value;

use super::row::{HEADERS, STEPS, WIDTHS, row};
use crate::api::{Api, lost};
use crate::args::ActivityFilter;
use crate::exit::{Exit, Failure, Outcome};
use crate::layout::Layout;
use crate::printer::{Format, Printer};
use crate::time::clock;

/// The longest event that is taken.
const EVENT_LIMIT: usize = 16 * 1024 * 1024;

/// The pause before looking for a daemon that went away.
const RETRY: Duration = Duration::from_secs(1);

/// How long a daemon may take to say where its log ends. It says so at once, if it can read it.
const GREETING: Duration = Duration::from_secs(5);

/// The way from events to the reader.
struct Watch<'a> {
    printer: &'a Printer,
    layout: Layout,
    /// The last event that was seen, or the one after which the watch began.
    place: Option<String>,
}

/// Events as they come in.
struct Events {
    body: Body,
    parser: EventParser,
}

pub(super) async fn run(
    settings: &Settings,
    filter: &ActivityFilter,
    printer: &Printer,
) -> Outcome {
    if filter.since.is_some() || filter.until.is_some() {
        return Err(
            Failure::new(Exit::Usage, "a watch takes neither --since nor --until")
                .why("it shows what happens from now on until it is ended")
                .advice("see what was before with `mcpproxy activity list --since TIME`"),
        );
    }
    // The first connection must work; after that, a daemon may be started again.
    let api = Api::daemon(settings).await?;
    let path = format!("/events{}", super::query(filter, []));
    let mut events = Events::new(api.events(&path, None).await?);
    let mut watch = Watch {
        printer,
        layout: printer.layout(WIDTHS.to_vec(), &STEPS),
        place: None,
    };
    if printer.format == Format::Table {
        printer.headers(&watch.layout, &HEADERS);
    }
    // Whoever knows their place misses nothing, even if the daemon goes before anything happens.
    let greeted = tokio::time::timeout(GREETING, watch.learn_place(&mut events)).await;
    greeted.unwrap_or(Ok(()))?;
    printer.note("watching; end with Ctrl-C");
    tokio::select! {
        outcome = watch.follow(settings, &path, events) => outcome,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Ok),
    }
}

impl Watch<'_> {
    async fn follow(&mut self, settings: &Settings, path: &str, first: Events) -> Outcome {
        let mut events = first;
        loop {
            // A stream that breaks off is taken up again where it broke.
            if let Err(failure) = self.print_all(&mut events).await {
                self.printer.note(&format!("warning: {}", failure.what));
            }
            self.printer
                .note("the daemon is gone; waiting for it to come back");
            let body = loop {
                tokio::time::sleep(RETRY).await;
                let Ok(api) = Api::daemon(settings).await else {
                    continue;
                };
                match api.events(path, self.place.as_deref()).await {
                    Ok(body) => break body,
                    Err(failure) if failure.exit == Exit::Unreachable => {}
                    Err(failure) => return Err(failure),
                }
            };
            self.printer.note("the daemon is back; watching");
            events = Events::new(body);
        }
    }

    async fn learn_place(&mut self, events: &mut Events) -> Result<(), Failure> {
        while self.place.is_none() {
            match events.next().await? {
                Some(event) => self.take(event)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    async fn print_all(&mut self, events: &mut Events) -> Result<(), Failure> {
        while let Some(event) = events.next().await? {
            self.take(event)?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<(), Failure> {
        self.print(&event)?;
        if event.id.is_some() {
            self.place = event.id;
        }
        Ok(())
    }

    fn print(&self, event: &Event) -> Result<(), Failure> {
        let name = event.event.as_deref().unwrap_or_default();
        if name == "place_lost" {
            self.printer
                .note("warning: some records were missed; see them with `mcpproxy activity list`");
            return Ok(());
        }
        if !name.starts_with("activity.") {
            return Ok(());
        }
        let record: Value = serde_json::from_slice(&event.data).map_err(|error| {
            Failure::from_error(Exit::Failed, "an event is not understood", &error)
        })?;
        match self.printer.format {
            Format::Table => self.printer.row(&self.layout, &row(&record, clock)),
            Format::Yaml => {
                let yaml = crate::yaml::to_yaml(&record);
                self.printer.text(&format!("---\n{yaml}"));
            }
            // One value a line, so that it can be piped.
            Format::Json | Format::Jsonl => self.printer.text(&format!("{record}\n")),
        }
        Ok(())
    }
}

impl Events {
    fn new(body: Body) -> Self {
        Self {
            body,
            parser: EventParser::new(EVENT_LIMIT),
        }
    }

    /// The next event; nothing when the stream has ended.
    async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.parser.next_event() {
                return event.map(Some).map_err(|error| lost(&error));
            }
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            if let Ok(data) = frame.map_err(|error| lost(&error))?.into_data() {
                self.parser.push(&data);
            }
        }
    }
}
