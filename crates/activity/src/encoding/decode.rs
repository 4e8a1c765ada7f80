//! The way back from bytes to records. Whatever the encoder would not have written is refused.

use std::sync::Arc;

use super::{VERSION, VERSION_WITH_FACTS};
use crate::chain::Hash;
use crate::facts::Facts;
use crate::id::ActivityId;
use crate::payload::SealedPayload;
use crate::record::{Ended, Metadata, RecordedIntent, Started};
use crate::words::Word;

/// Takes fields from the beginning of bytes.
pub(crate) struct Decoder<'a>(pub(crate) &'a [u8]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the encoding of a record")]
pub(crate) struct InvalidEncoding;

type Result<T> = std::result::Result<T, InvalidEncoding>;

impl<'a> Decoder<'a> {
    pub(crate) fn id(&mut self) -> Result<ActivityId> {
        Ok(ActivityId::from_halves(self.number()?, self.number()?))
    }

    /// The text of its arguments is not among the fields.
    pub(crate) fn start(&mut self, version: u8) -> Result<Started> {
        Ok(Started {
            id: self.id()?,
            record_type: self.word()?.ok_or(InvalidEncoding)?,
            source: self.word()?.ok_or(InvalidEncoding)?,
            server_name: self.name()?,
            tool_name: self.name()?,
            session_id: self.name()?,
            client_name: self.name()?,
            request_id: self.name()?,
            request_bytes: self.number()?,
            arguments: self.payload()?,
            metadata: self.metadata(version)?,
        })
    }

    /// The text of its response is not among the fields.
    pub(crate) fn end(&mut self) -> Result<Ended> {
        Ok(Ended {
            status: self.word()?.ok_or(InvalidEncoding)?,
            error_code: self.name()?,
            error_message: self.name()?,
            duration_ms: self.number()?,
            response_bytes: self.number()?,
            response: self.payload()?,
        })
    }

    /// Everything must have been taken.
    pub(crate) fn finish(self) -> Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(InvalidEncoding)
        }
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let [byte] = self.chunk()?;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let bytes = self.bytes()?.ok_or(InvalidEncoding)?;
        let bytes = bytes.try_into().map_err(|_| InvalidEncoding)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn metadata(&mut self, version: u8) -> Result<Metadata> {
        Ok(Metadata {
            intent: self.intent()?,
            tool_variant: self.word()?,
            effective_tier: self.word()?,
            provenance: self.word()?,
            warnings: self.warnings()?,
            facts: match version {
                VERSION => None,
                VERSION_WITH_FACTS => Some(Facts::unpack(self.number()?).ok_or(InvalidEncoding)?),
                _ => return Err(InvalidEncoding),
            },
        })
    }

    fn intent(&mut self) -> Result<Option<RecordedIntent>> {
        let given = self.flag()?;
        let intent = RecordedIntent {
            operation_type: self.word()?,
            data_sensitivity: self.word()?,
            reason: self.text()?.map(str::to_owned),
        };
        match given {
            true => Ok(Some(intent)),
            false if intent == RecordedIntent::default() => Ok(None),
            false => Err(InvalidEncoding),
        }
    }

    fn warnings(&mut self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        // No space is set aside for a number that may be wrong.
        for _ in 0..self.number()? {
            warnings.push(self.text()?.ok_or(InvalidEncoding)?.to_owned());
        }
        Ok(warnings)
    }

    fn payload(&mut self) -> Result<Option<SealedPayload>> {
        let digest = self.bytes()?;
        let (truncated, kept) = (self.flag()?, self.flag()?);
        let Some(digest) = digest else {
            return if truncated || kept {
                Err(InvalidEncoding)
            } else {
                Ok(None)
            };
        };
        Ok(Some(SealedPayload {
            digest: Hash(digest.try_into().map_err(|_| InvalidEncoding)?),
            truncated,
            text: None,
            kept,
        }))
    }

    fn flag(&mut self) -> Result<bool> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(InvalidEncoding),
        }
    }

    fn word<W: Word>(&mut self) -> Result<Option<W>> {
        let parse = |text| W::parse(text).ok_or(InvalidEncoding);
        self.text()?.map(parse).transpose()
    }

    fn name(&mut self) -> Result<Option<Arc<str>>> {
        Ok(self.text()?.map(Arc::from))
    }

    fn text(&mut self) -> Result<Option<&'a str>> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| InvalidEncoding);
        self.bytes()?.map(text).transpose()
    }

    fn bytes(&mut self) -> Result<Option<&'a [u8]>> {
        match self.byte()? {
            0 => Ok(None),
            1 => {
                let length = u32::from_be_bytes(self.chunk()?) as usize;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(InvalidEncoding)?;
                self.0 = rest;
                Ok(Some(bytes))
            }
            _ => Err(InvalidEncoding),
        }
    }

    fn chunk<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH]> {
        let (chunk, rest) = self.0.split_first_chunk().ok_or(InvalidEncoding)?;
        self.0 = rest;
        Ok(*chunk)
    }
}
