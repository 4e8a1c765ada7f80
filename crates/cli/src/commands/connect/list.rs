//! `mcpproxy connect` without a client: which there are, and which use mcpproxy.

use clients::{Client, Places};
use serde_json::json;

use crate::exit::Exit;
use crate::printer::{Format, Printer};

pub(super) fn run(places: &Places, printer: &Printer) -> Exit {
    let clients = Client::ALL.map(|client| (client, state(client, places)));
    if printer.format == Format::Table {
        let rows = clients.iter().map(|(client, state)| {
            let file = client.main_file(places);
            vec![
                client.as_str().into(),
                client.title().into(),
                (*state).into(),
                file.to_string_lossy().into_owned().into(),
            ]
        });
        printer.table(&["CLIENT", "NAME", "STATE", "FILE"], rows.collect());
        return Exit::Ok;
    }
    let clients = clients.map(|(client, state)| {
        json!({
            "client": client.as_str(),
            "name": client.title(),
            "state": state,
            "file": client.main_file(places),
        })
    });
    printer.data(&json!({"clients": clients}), Some("clients"));
    Exit::Ok
}

fn state(client: Client, places: &Places) -> &'static str {
    match clients::permissions(client, places) {
        Ok(found) if found.connected => "connected",
        Ok(_) if client.main_file(places).exists() => "not connected",
        Ok(_) => "no config",
        Err(_) => "unreadable",
    }
}
