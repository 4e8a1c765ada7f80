//! Just enough of server-sent events to read an answer.

/// The data of each event that has any.
pub(super) fn data(body: &str) -> Vec<String> {
    body.split("\n\n")
        .map(|event| {
            let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
            let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
            lines.collect::<Vec<_>>().join("\n")
        })
        .filter(|data| !data.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_data_are_left_out_and_lines_are_joined() {
        let body = "id: 1\ndata:\n\n: comment\n\nevent: message\ndata: {\ndata:  1}\n\n";
        assert_eq!(data(body), ["{\n 1}"]);
    }
}
