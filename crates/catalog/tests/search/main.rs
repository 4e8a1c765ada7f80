//! Search as the daemon uses it: known queries, and what holds for any query.

#[cfg(test)]
mod known_queries;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tool_lists;
