//! Hash maps for short texts: faster than the standard ones and still seeded, because the keys
//! come from upstreams.

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
