//! Cursors and the query of a list.

use activity::{Begin, Cursor, ListRequest};

pub(crate) fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok(cursor) = text.parse::<Cursor>() {
        let shown = cursor.to_string();
        assert!(shown.eq_ignore_ascii_case(text), "another cursor is shown");
        assert_eq!(shown.parse::<Cursor>().ok(), Some(cursor));
    }
    let pairs: Vec<_> = text
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    match ListRequest::from_pairs(pairs.iter().copied()) {
        Ok(request) => {
            let limit = request.page.limit();
            assert!((1..=activity::HIGHEST_LIMIT).contains(&limit), "{limit}");
            let given = |name| pairs.iter().any(|(known, _)| *known == name);
            if matches!(request.page.begin, Begin::After(_)) {
                assert!(given("cursor") && !given("offset"));
            }
        }
        // What is wrong is said without repeating it at length.
        Err(error) => assert!(error.to_string().len() < 2_000 + text.len()),
    }
}
