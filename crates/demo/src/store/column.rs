//! How the parts of a note are written into columns and read back.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::note::{Body, Limit, Moment, NoteId, NoteState, Tag, Title, VersionNumber};

/// A set of tags as the JSON array that its column holds.
pub(super) struct Tags<T>(pub T);

/// How many there are of something.
pub(super) struct Count(pub usize);

macro_rules! number_column {
    ($($name:ident),*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.get().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let number = value.as_i64()?;
                Self::new(number).ok_or(FromSqlError::OutOfRange(number))
            }
        }
    )*};
}

macro_rules! text_column {
    ($($name:ident),*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Self::try_from(value.as_str()?.to_owned()).map_err(FromSqlError::other)
            }
        }
    )*};
}

number_column!(NoteId, VersionNumber, Limit);
text_column!(Title, Body, Tag);

impl ToSql for Count {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        i64::try_from(self.0)
            .map(Into::into)
            .map_err(|source| rusqlite::Error::ToSqlConversionFailure(source.into()))
    }
}

impl FromSql for Count {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        usize::try_from(number)
            .map(Self)
            .map_err(|_| FromSqlError::OutOfRange(number))
    }
}

impl ToSql for Moment {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_milliseconds().into())
    }
}

impl FromSql for Moment {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::from_milliseconds(value.as_i64()?).map_err(FromSqlError::other)
    }
}

impl ToSql for NoteState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for NoteState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        [Self::Active, Self::Archived, Self::Bin]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or(FromSqlError::InvalidType)
    }
}

impl<T: serde::Serialize> ToSql for Tags<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        serde_json::to_string(&self.0)
            .map(Into::into)
            .map_err(|source| rusqlite::Error::ToSqlConversionFailure(source.into()))
    }
}

impl<T: serde::de::DeserializeOwned> FromSql for Tags<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?)
            .map(Self)
            .map_err(FromSqlError::other)
    }
}
