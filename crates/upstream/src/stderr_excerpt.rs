//! Which lines of stderr say why a process ended.

/// How npm begins its lines, before version 10 and since.
const NPM: [&str; 2] = ["npm error ", "npm ERR! "];

/// What a line has that names an error.
const MARKS: [&str; 6] = ["Error:", "error:", "ERROR", "Exception:", "panic", "fatal:"];

/// Up to `most` of these lines, in their order: the last ones, unless they are the end of a
/// report whose beginning says what happened.
pub(crate) fn excerpt(lines: &[String], most: usize) -> Vec<String> {
    let lines: Vec<&String> = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(most)..];
    let chosen = of_npm(&lines, most).or_else(|| with_error(&lines, last));
    let chosen = chosen.unwrap_or_else(|| last.to_vec());
    chosen.into_iter().cloned().collect()
}

/// npm ends with general advice and the place of its log. What happened is behind its code.
fn of_npm<'a>(lines: &[&'a String], most: usize) -> Option<Vec<&'a String>> {
    let said = |line: &&'a String| {
        let rest = NPM.iter().find_map(|prefix| line.strip_prefix(prefix));
        rest.map(str::trim)
    };
    let code = |line: &&'a String| said(line).is_some_and(|rest| rest.starts_with("code "));
    let begin = lines.iter().rposition(code)?;
    let has_words =
        |line: &&'a String| said(line).is_none_or(|rest| rest.contains(char::is_whitespace));
    let chosen = lines[begin..].iter().copied().filter(has_words);
    Some(chosen.take(most).collect())
}

/// The line that names the error before a stack trace, and the last lines.
fn with_error<'a>(lines: &[&'a String], last: &[&'a String]) -> Option<Vec<&'a String>> {
    let names_error = |line: &&&'a String| MARKS.iter().any(|mark| line.contains(mark));
    if last.iter().any(|line| names_error(&line)) {
        return None;
    }
    let error = lines.iter().rfind(names_error)?;
    Some([&[*error], &last[1..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str) -> Vec<String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        excerpt(&lines, 3)
    }

    #[test]
    fn the_reason_of_npm_is_behind_its_code() {
        for prefix in NPM {
            let text = "code E404\n404 Not Found - GET https://registry.example/nope\n404\n\
                404  'nope@*' is not in this registry.\n404\n404 Note that you can also install from a\n\
                404 tarball, folder, http url, or git folder.\nA complete log of this run can be found in: /x";
            let text: String = text
                .lines()
                .map(|line| format!("{prefix}{line}\n"))
                .collect();
            let expected = [
                "code E404",
                "404 Not Found - GET https://registry.example/nope",
                "404  'nope@*' is not in this registry.",
            ];
            let expected = expected.map(|line| format!("{prefix}{line}"));
            assert_eq!(chosen(&text), expected);
        }
    }

    #[test]
    fn the_error_before_a_stack_trace_is_among_the_lines() {
        let text =
            "throw err;\n^\n\nError: Cannot find module 'x'\n    at a\n    at b\n\nNode.js v20\n";
        assert_eq!(
            chosen(text),
            ["Error: Cannot find module 'x'", "    at b", "Node.js v20"]
        );
    }

    #[test]
    fn otherwise_the_last_lines_count_without_empty_ones() {
        assert_eq!(chosen("a\nb\n\nc\n\nd\n"), ["b", "c", "d"]);
        assert_eq!(
            chosen("KeyError: 1\nb\nValueError: 2"),
            ["KeyError: 1", "b", "ValueError: 2"]
        );
        assert_eq!(chosen("\n"), [""; 0]);
    }
}
