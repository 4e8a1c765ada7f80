//! Pages of records, newest first, and where the next one begins.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::chain::Hash;
use crate::filter::{Filter, FilterError};
use crate::id::ActivityId;
use crate::record::Record;

pub const DEFAULT_LIMIT: u32 = 50;
pub const HIGHEST_LIMIT: u32 = 100;
const HIGHEST_OFFSET: u64 = 10_000_000;

const CURSOR_VERSION: u8 = 1;
const CURSOR_DIGITS: usize = 2 + 16 + 8;

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// After so many records, counted from the newest.
    Offset(u64),
    /// After the record with which another page ended.
    After(Cursor),
}

/// The record with which a page ended, in a form that callers pass back without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cursor {
    order: u64,
}

/// How much of the list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    limit: u32,
    pub begin: Begin,
    /// Whether arguments and responses come along.
    pub include_bodies: bool,
}

/// A whole request for a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    pub filter: Filter,
    pub page: PageRequest,
}

/// One page, in the shape that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page {
    pub activities: Vec<Record>,
    /// How many records match in all.
    pub total: u64,
    /// Whether there are more than `total`, and counting stopped there to answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub total_is_lower_bound: bool,
    pub limit: u32,
    pub offset: u64,
    /// Where the next page begins; give it back as `cursor`.
    #[schema(value_type = Option<String>)]
    pub next_cursor: Option<Cursor>,
}

impl PageRequest {
    pub fn new(limit: u32, begin: Begin) -> Result<Self, FilterError> {
        if (1..=HIGHEST_LIMIT).contains(&limit) {
            Ok(Self {
                limit,
                begin,
                include_bodies: true,
            })
        } else {
            Err(invalid_number(
                "limit",
                &limit.to_string(),
                1,
                HIGHEST_LIMIT.into(),
            ))
        }
    }

    pub fn limit(self) -> u32 {
        self.limit
    }

    pub(crate) fn offset(self) -> u64 {
        match self.begin {
            Begin::Offset(offset) => offset,
            Begin::After(_) => 0,
        }
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            begin: Begin::Offset(0),
            include_bodies: true,
        }
    }
}

impl ListRequest {
    /// Parses the filters and `limit`, `offset` and `cursor`; any other name is an error.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, FilterError> {
        let mut filter = Filter::default();
        let (mut limit, mut offset, mut cursor) = (DEFAULT_LIMIT, None, None);
        for (name, value) in pairs {
            match name {
                "limit" => {
                    let number = number("limit", value, 1, HIGHEST_LIMIT.into())?;
                    limit = u32::try_from(number).unwrap_or(HIGHEST_LIMIT);
                }
                "offset" => offset = Some(number("offset", value, 0, HIGHEST_OFFSET)?),
                "cursor" => cursor = Some(value.parse::<Cursor>()?),
                name if filter.set(name, value)? => {}
                name => {
                    let mut known = Filter::PARAMETERS.to_vec();
                    known.extend(["limit", "offset", "cursor"]);
                    return Err(FilterError::UnknownParameter {
                        name: name.to_owned(),
                        known,
                    });
                }
            }
        }
        filter.check()?;
        let begin = match (offset, cursor) {
            (Some(_), Some(_)) => return Err(FilterError::CursorAndOffset),
            (_, Some(cursor)) => Begin::After(cursor),
            (offset, None) => Begin::Offset(offset.unwrap_or(0)),
        };
        Ok(Self {
            filter,
            page: PageRequest::new(limit, begin)?,
        })
    }
}

fn number(parameter: &'static str, value: &str, least: u64, most: u64) -> Result<u64, FilterError> {
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(invalid_number(parameter, value, least, most)),
    }
}

fn invalid_number(parameter: &'static str, value: &str, least: u64, most: u64) -> FilterError {
    FilterError::Number {
        parameter,
        value: value.to_owned(),
        least,
        most,
    }
}

impl Cursor {
    /// The cursor that continues after this record.
    pub fn after(id: ActivityId) -> Self {
        Self { order: id.order() }
    }

    pub(crate) fn order(self) -> u64 {
        self.order
    }

    /// Catches cursors that were typed, shortened or taken from elsewhere. It is no secret: a
    /// cursor that somebody made up only names another place in the same list.
    fn check(order: u64) -> [u8; 4] {
        let [a, b, c, d, ..] = Hash::of(&[b"cursor".as_slice(), &order.to_be_bytes()].concat()).0;
        [a, b, c, d]
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let check = u32::from_be_bytes(Self::check(self.order));
        write!(
            formatter,
            "{CURSOR_VERSION:02x}{:016x}{check:08x}",
            self.order
        )
    }
}

impl FromStr for Cursor {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != CURSOR_DIGITS || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(FilterError::Cursor);
        }
        let order = u64::from_str_radix(&text[2..18], 16).map_err(|_| FilterError::Cursor)?;
        let cursor = Self { order };
        if cursor.to_string().eq_ignore_ascii_case(text) {
            Ok(cursor)
        } else {
            Err(FilterError::Cursor)
        }
    }
}

impl TryFrom<String> for Cursor {
    type Error = FilterError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_are_checked_and_defaults_apply() {
        let request = ListRequest::from_pairs([]).unwrap();
        assert_eq!(request.page, PageRequest::default());
        for (name, value) in [
            ("limit", "0"),
            ("limit", "101"),
            ("limit", "ten"),
            ("offset", "-1"),
            ("cursor", "x"),
        ] {
            let error = ListRequest::from_pairs([(name, value)]).unwrap_err();
            assert!(error.to_string().starts_with("invalid "), "{error}");
        }
        let error = ListRequest::from_pairs([("page", "2")]).unwrap_err();
        assert!(error.to_string().contains("q, limit, offset, cursor"));
    }

    proptest! {
        #[test]
        fn a_cursor_survives_being_written_down(order: u64) {
            let cursor = Cursor { order };
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }

        #[test]
        fn a_cursor_with_a_changed_digit_is_refused(order: u64, position in 0..CURSOR_DIGITS) {
            let mut text = Cursor { order }.to_string().into_bytes();
            text[position] = if text[position] == b'0' { b'1' } else { b'0' };
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(text.parse::<Cursor>(), Err(FilterError::Cursor));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<Cursor>();
        }
    }
}
