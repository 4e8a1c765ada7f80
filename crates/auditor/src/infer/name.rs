//! What the name of a tool says.

use crate::lexicon::{Deed, Lexicon, Verb};
use crate::text::Words;

/// What a name says, with the words that say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameSays {
    Verb(Verb),
    /// No verb, but a noun that one looks at: `backup_status`.
    ReadNoun(&'static str),
    Nothing,
}

impl NameSays {
    pub(super) fn verb(self) -> Option<Verb> {
        match self {
            Self::Verb(verb) => Some(verb),
            Self::ReadNoun(_) | Self::Nothing => None,
        }
    }
}

/// Reads a name, or a choice of a parameter that names an action.
pub(super) fn read_name(name: &Words, server: &Words, lexicon: &Lexicon) -> NameSays {
    let first = skip_server(name, server);
    let Some(last) = last_telling(name) else {
        return NameSays::Nothing;
    };
    if let Some(verb) = surest_verb(name, first, last, lexicon) {
        return NameSays::Verb(verb);
    }
    let at = |index| name.get(index).and_then(|word| lexicon.verb(word));
    let (front, back) = (at(first), at(last));
    // `list_backup` is verb first, `backup_list` verb last; `set_watch` is no look at a set.
    let verb = match (front, back) {
        (Some(front), _) if front.deed == Deed::Read => Some(front),
        (Some(front), Some(back)) if imperative(front) || !ends_in_look(back) => {
            Some(std::cmp::max_by_key(back, front, |verb| verb.deed))
        }
        (front, back) => back.or(front),
    };
    let noun = name.get(last).and_then(|word| lexicon.read_noun(word));
    match (verb, noun) {
        // `deploy_status` and `build_logs` look at what the first word names.
        (Some(verb), Some(noun)) if back.is_none() && !imperative(verb) => NameSays::ReadNoun(noun),
        (Some(verb), _) => NameSays::Verb(verb),
        (None, Some(noun)) => NameSays::ReadNoun(noun),
        (None, None) => middle_look(name, lexicon)
            .or_else(|| glued(name, first, lexicon))
            .map_or(NameSays::Nothing, NameSays::Verb),
    }
}

/// The first word that is a verb wherever it stands, or the worst of those joined to it by "or"
/// and "and".
fn surest_verb(name: &Words, first: usize, last: usize, lexicon: &Lexicon) -> Option<Verb> {
    let at = |index| name.get(index).and_then(|word| lexicon.verb(word));
    let sure = |index| at(index).filter(|verb: &Verb| !verb.may_be_noun);
    let start = (first..name.len()).find(|index| sure(*index).is_some())?;
    // `list_deploy_keys` and `fs_import_get`: a word for looking at one end makes a verb in the
    // middle a noun. "read" at the end does not, as in `mark_all_read`.
    let looks = |verb: &Verb| verb.deed == Deed::Read && verb.word != "read";
    if start > first && start < last {
        if let Some(verb) = sure(last).filter(looks) {
            return Some(verb);
        }
        if let Some(verb) = at(first).filter(looks).filter(|_| start > first + 1) {
            return Some(verb);
        }
    }
    let mut worst = sure(start)?;
    let mut index = start + 1;
    while matches!(name.get(index), Some("or" | "and")) {
        let Some(verb) = sure(index + 1) else { break };
        worst = std::cmp::max_by_key(worst, verb, |verb| verb.deed);
        index += 2;
    }
    Some(worst)
}

/// The last word that is neither a number nor a word for "tool".
fn last_telling(name: &Words) -> Option<usize> {
    let tells = |word: &str| {
        !word.starts_with(|first: char| first.is_ascii_digit())
            && !matches!(
                word,
                "tool" | "tools" | "api" | "mcp" | "function" | "command" | "endpoint"
            )
    };
    let last = (0..name.len()).rfind(|index| name.get(*index).is_some_and(tells));
    last.or(name.len().checked_sub(1))
}

/// Words that are hardly ever nouns when they come first, whatever follows.
fn imperative(verb: Verb) -> bool {
    const IMPERATIVE: [&str; 18] = [
        "set", "make", "take", "open", "new", "change", "move", "copy", "share", "post", "place",
        "select", "handle", "generate", "format", "store", "load", "track",
    ];
    matches!(verb.deed, Deed::Read | Deed::Execute) || IMPERATIVE.contains(&verb.word)
}

/// Words that come last where the noun comes first.
fn ends_in_look(verb: Verb) -> bool {
    matches!(
        verb.word,
        "list" | "search" | "query" | "view" | "count" | "check" | "download" | "preview"
    )
}

/// Many servers put their own name in front of every tool's.
fn skip_server(name: &Words, server: &Words) -> usize {
    let common = name.iter().zip(server.iter()).take_while(|(a, b)| a == b);
    let common = common.count();
    if common < name.len() { common } else { 0 }
}

/// `createorupdate`, `getweather`: one unknown word that begins with a verb.
fn glued(name: &Words, first: usize, lexicon: &Lexicon) -> Option<Verb> {
    const LEADING: [&str; 12] = [
        "create", "delete", "remove", "update", "insert", "search", "fetch", "list", "send",
        "find", "get", "write",
    ];
    let mut words = (first..name.len()).filter_map(|index| name.get(index));
    words.find_map(|word| {
        let verb = LEADING.iter().find(|verb| {
            let rest = word.strip_prefix(**verb);
            rest.is_some_and(|rest| rest.len() > 3 && !rest.starts_with("ing"))
        })?;
        lexicon.verb(verb)
    })
}

/// A word for looking between nouns: `workers_builds_list_builds`.
fn middle_look(name: &Words, lexicon: &Lexicon) -> Option<Verb> {
    let mut verbs = name.iter().filter_map(|word| lexicon.verb(word));
    verbs.find(|verb| verb.deed == Deed::Read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(name: &str) -> String {
        says_on("", name)
    }

    fn says_on(server: &str, name: &str) -> String {
        let (name, server) = (Words::of_identifier(name), Words::of_identifier(server));
        match read_name(&name, &server, Lexicon::get()) {
            NameSays::Verb(verb) => verb.word.to_owned(),
            NameSays::ReadNoun(noun) => format!("({noun})"),
            NameSays::Nothing => String::new(),
        }
    }

    #[test]
    fn the_verb_may_stand_first_last_or_between() {
        assert_eq!(says("delete_user"), "delete");
        assert_eq!(says("sql_server_create"), "create");
        assert_eq!(says("threads_send_message"), "send");
        assert_eq!(says("deploy_plan_get"), "get");
        assert_eq!(says("blob_import_get"), "get");
        assert_eq!(says("list_new_invite_codes"), "list");
        assert_eq!(says("access_list_create"), "create");
        assert_eq!(says("notifications_mark_all_read"), "mark");
    }

    #[test]
    fn nouns_that_could_be_verbs_count_only_at_the_ends() {
        assert_eq!(says("list_set_members"), "list");
        assert_eq!(says("remove_set_member"), "remove");
        assert_eq!(says("set_title"), "set");
        assert_eq!(says("backup_list"), "list");
        assert_eq!(says("archive_note"), "archive");
        assert_eq!(says("knowledge_archive_download"), "download");
    }

    #[test]
    fn the_worst_of_joined_verbs_counts() {
        assert_eq!(says("get_or_create_label"), "create");
        assert_eq!(says("add_and_remove_items"), "remove");
    }

    #[test]
    fn a_noun_at_the_end_can_turn_a_name_into_a_look() {
        assert_eq!(says("backup_status"), "(status)");
        assert_eq!(says("memory_info"), "(info)");
        assert_eq!(says("backup_now"), "backup");
        assert_eq!(says("change_status"), "change");
        assert_eq!(says("set_watch"), "set");
        assert_eq!(says("schedule_export"), "schedule");
    }

    #[test]
    fn the_name_of_the_server_in_front_is_no_verb() {
        assert_eq!(says_on("search", "search_index_view"), "view");
        assert_eq!(says_on("fetch", "fetch"), "fetch");
    }

    #[test]
    fn words_written_together_are_taken_apart() {
        assert_eq!(says("testrun_createorupdate"), "create");
        assert_eq!(says("listing"), "");
    }
}
