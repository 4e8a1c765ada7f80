//! Behaviour of the auditor from outside: tiers, findings, reports and manifests.

#[cfg(test)]
mod inference;
#[cfg(test)]
mod manifest;
#[cfg(test)]
mod poisoning;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod support;
