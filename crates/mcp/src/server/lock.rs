//! The lock of the crate, under the name the server knows it by.

pub(super) use crate::lock::lock;
