//! `mcpproxy activity watch`: records as they are made, until Ctrl-C. Where no daemon runs, the log
//! itself is watched: `call` and `stdio` write it, too.

use std::time::Duration;

use axum::body::Body;
use config::Settings;
use http_body_util::BodyExt;
use mcp::sse::{Event, EventParser};
use serde_json::Value;

use super::row::{HEADERS, STEPS, WIDTHS, row};
use crate::api::{Api, lost};
use crate::args::ActivityFilter;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::layout::Layout;
use crate::printer::{Format, Printer};
use crate::time::clock;

/// The longest event that is taken.
const EVENT_LIMIT: usize = 16 * 1024 * 1024;

/// The pause before looking again for somebody to tell what happens.
const RETRY: Duration = Duration::from_millis(500);

/// How many times that is tried before a word is said about it: a log that is being made, or a
/// daemon that is being started, cannot be read for a moment.
const QUIET_TRIES: u32 = 3;

/// How long it may take to hear where the log ends. That is said at once, if it can be read.
const GREETING: Duration = Duration::from_secs(5);

/// The way from events to the reader.
struct Watch<'a> {
    settings: &'a Settings,
    printer: &'a Printer,
    path: String,
    layout: Layout,
    /// The last event that was seen, or the one after which the watch began.
    place: Option<String>,
}

/// Events as they come in, and from whom.
struct Events {
    api: Api,
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
    let mut watch = Watch {
        settings,
        printer,
        path: format!("/events{}", super::query(filter, [])),
        layout: printer.layout(WIDTHS.to_vec(), &STEPS),
        place: None,
    };
    // The first time must work; after that, a daemon may be started again.
    let mut events = watch.begin().await?;
    if printer.format == Format::Table {
        printer.headers(&watch.layout, &HEADERS);
    }
    // Whoever knows their place misses nothing, even if the daemon goes before anything happens.
    let greeted = tokio::time::timeout(GREETING, watch.learn_place(&mut events)).await;
    greeted.unwrap_or(Ok(()))?;
    watch.say_what_is_watched(&events);
    tokio::select! {
        () = watch.follow(events) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Exit::Ok)
}

impl Watch<'_> {
    /// Asks the daemon, or where there is none the log itself.
    async fn begin(&self) -> Result<Events, Failure> {
        let api = Api::for_log(self.settings).await?;
        match api.events(&self.path, self.place.as_deref()).await {
            Ok(body) => Ok(Events {
                api,
                body,
                parser: EventParser::new(EVENT_LIMIT),
            }),
            Err(failure) => {
                api.close().await;
                Err(failure)
            }
        }
    }

    /// Goes on until nobody reads it any more.
    async fn follow(&mut self, first: Events) {
        let mut events = first;
        loop {
            // A stream that breaks off is taken up again where it broke.
            if let Err(failure) = self.print_all(&mut events).await
                && failure.exit != Exit::Unreachable
            {
                self.printer.note(&format!("warning: {}", failure.what));
            }
            if !self.printer.is_heard() {
                return events.close().await;
            }
            let had_daemon = events.api.is_daemon();
            if had_daemon {
                self.printer.note("the daemon is gone");
            }
            // What is still open would be in the way of whoever stores what a dead process left.
            events.close().await;
            events = self.begin_again().await;
            if had_daemon || events.api.is_daemon() {
                self.say_what_is_watched(&events);
            }
        }
    }

    async fn begin_again(&self) -> Events {
        let mut tries = 0;
        loop {
            tokio::time::sleep(RETRY).await;
            match self.begin().await {
                Ok(events) => return events,
                Err(failure) => {
                    tries += 1;
                    if tries == QUIET_TRIES {
                        let what = failure.what;
                        self.printer
                            .note(&format!("warning: {what}; trying on until it works"));
                    }
                }
            }
        }
    }

    fn say_what_is_watched(&self, events: &Events) {
        self.printer.note(if events.api.is_daemon() {
            "watching the daemon; end with Ctrl-C"
        } else {
            "watching the log, no daemon is running; end with Ctrl-C"
        });
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
        while self.printer.is_heard()
            && let Some(event) = events.next().await?
        {
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
                let yaml = escape::yaml(&crate::yaml::to_yaml(&record));
                self.printer.text(&format!("---\n{yaml}"));
            }
            // One value a line, so that it can be piped.
            Format::Json | Format::Jsonl => {
                let json = escape::json(&record.to_string());
                self.printer.text(&format!("{json}\n"));
            }
        }
        Ok(())
    }
}

impl Events {
    async fn close(self) {
        drop(self.body);
        self.api.close().await;
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
