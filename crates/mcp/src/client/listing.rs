//! One budget of pages, bytes and time for a list that a server hands out page by page.
//!
//! A server decides how many pages there are, so every loop over pages asks a [`Listing`] before it
//! asks the server. Only the newest cursor is kept.

use std::time::Duration;

use tokio::time::Instant;

/// Pages in a row without a new item after which a listing fails. A server that filters its items
/// may have an empty page or two.
const FRUITLESS_PAGES: usize = 10;

/// What one listing may take, over all its pages.
#[derive(Debug, Clone, Copy)]
pub struct ListingBudget {
    pub pages: usize,
    pub bytes: usize,
    pub time: Duration,
}

/// A listing under way.
#[derive(Debug)]
pub struct Listing {
    budget: ListingBudget,
    deadline: Instant,
    pages: usize,
    bytes: usize,
    fruitless: usize,
    cursor: Option<String>,
}

/// Why a listing does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListingOverrun {
    #[error("the list has more than {limit} pages")]
    Pages { limit: usize },
    #[error("the list has more than {limit} bytes")]
    Bytes { limit: usize },
    #[error("the list took longer than {} s", .limit.as_secs_f64())]
    Time { limit: Duration },
    #[error("the server gives the same cursor again and again")]
    CursorLoop,
    #[error("the last {pages} pages of the list held nothing new")]
    NothingNew { pages: usize },
}

impl Default for ListingBudget {
    fn default() -> Self {
        Self {
            pages: 1_000,
            bytes: 64 * 1024 * 1024,
            time: Duration::from_mins(1),
        }
    }
}

impl Listing {
    pub fn begin(budget: ListingBudget) -> Self {
        Self {
            budget,
            deadline: Instant::now() + budget.time,
            pages: 0,
            bytes: 0,
            fruitless: 0,
            cursor: None,
        }
    }

    /// How long the next page may take.
    pub fn time_left(&self) -> Result<Duration, ListingOverrun> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.late());
        }
        Ok(left)
    }

    /// The error of a listing whose time is over.
    pub fn late(&self) -> ListingOverrun {
        ListingOverrun::Time {
            limit: self.budget.time,
        }
    }

    /// Counts a page. The cursor of the next one, or `None` if this was the last.
    pub fn turn(
        &mut self,
        bytes: usize,
        new_items: usize,
        next: Option<String>,
    ) -> Result<Option<&str>, ListingOverrun> {
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.budget.bytes {
            let limit = self.budget.bytes;
            return Err(ListingOverrun::Bytes { limit });
        }
        let Some(next) = next else {
            return Ok(None);
        };
        if self.pages >= self.budget.pages {
            let limit = self.budget.pages;
            return Err(ListingOverrun::Pages { limit });
        }
        if self.cursor.as_deref() == Some(&next) {
            return Err(ListingOverrun::CursorLoop);
        }
        self.fruitless = if new_items == 0 {
            self.fruitless + 1
        } else {
            0
        };
        if self.fruitless >= FRUITLESS_PAGES {
            let pages = self.fruitless;
            return Err(ListingOverrun::NothingNew { pages });
        }
        self.cursor = Some(next);
        self.time_left()?;
        Ok(self.cursor.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: ListingBudget = ListingBudget {
        pages: 20,
        bytes: 1_000,
        time: Duration::from_mins(1),
    };

    /// Turns pages of one item until the listing ends; how many there were.
    fn turned(mut page: impl FnMut(usize) -> (usize, usize, Option<String>)) -> (usize, String) {
        let mut listing = Listing::begin(BUDGET);
        for number in 1.. {
            let (bytes, items, next) = page(number);
            match listing.turn(bytes, items, next) {
                Ok(Some(_)) => {}
                Ok(None) => return (number, "end".to_owned()),
                Err(overrun) => return (number, overrun.to_string()),
            }
        }
        unreachable!()
    }

    #[test]
    fn a_listing_without_an_end_is_ended() {
        let fresh = |number: usize| Some(number.to_string());
        let (pages, why) = turned(|number| (1, 1, fresh(number)));
        assert_eq!((pages, why.contains("20 pages")), (20, true), "{why}");
        let (pages, why) = turned(|number| (400, 1, fresh(number)));
        assert_eq!((pages, why.contains("1000 bytes")), (3, true), "{why}");
        let (pages, why) = turned(|number| (1, 0, fresh(number)));
        assert_eq!((pages, why.contains("nothing new")), (10, true), "{why}");
        let (pages, why) = turned(|_| (1, 1, Some("same".to_owned())));
        assert_eq!((pages, why.contains("same cursor")), (2, true), "{why}");
    }

    #[test]
    fn a_listing_within_its_budget_comes_to_its_end() {
        let (pages, why) = turned(|number| (50, 1, (number < 20).then(|| number.to_string())));
        assert_eq!((pages, why.as_str()), (20, "end"));
        // Empty pages between full ones are no reason to give up.
        let next = |number: usize| (number < 19).then(|| number.to_string());
        let (pages, why) = turned(|number| (1, number % 3, next(number)));
        assert_eq!((pages, why.as_str()), (19, "end"));
    }

    #[test]
    fn a_listing_has_one_time_for_all_its_pages() {
        let mut listing = Listing::begin(ListingBudget {
            time: Duration::ZERO,
            ..BUDGET
        });
        assert_eq!(listing.time_left(), Err(listing.late()));
        let next = listing.turn(1, 1, Some("a".to_owned())).map(drop);
        assert_eq!(
            next,
            Err(ListingOverrun::Time {
                limit: Duration::ZERO
            })
        );
    }
}
