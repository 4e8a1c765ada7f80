//! Wrong API keys: an address that tries many is slowed down.
//!
//! The same wrong key again is a client with an old key and no guess. Right keys are answered at
//! once, unless their address has so many wrong ones under way that no key of it is looked at.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::seldom::Seldom;

/// Wrong keys of one address that cost no time.
const FREE: u32 = 5;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// Wrong keys of one address that may be answered at the same time. Hanging up ends none early.
const AT_ONCE: usize = 8;
/// An address is forgotten after this long without a wrong key.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);
/// Addresses that are remembered; beyond it the one that was quiet for longest is forgotten.
const MOST_ADDRESSES: usize = 1_024;
/// Wrong keys of one address that are known when they come again.
const KNOWN_KEYS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Guesses {
    by_address: Mutex<HashMap<IpAddr, Guesser>>,
    hasher: RandomState,
    seldom: Seldom,
}

#[derive(Debug)]
struct Guesser {
    wrong_keys: u32,
    last: Instant,
    /// When the answers that are under way are given.
    until: Vec<Instant>,
    /// Hashes, with a seed of this process.
    known: Vec<u64>,
}

/// No key of this address is looked at for now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    pub retry_after: Duration,
}

impl Guesses {
    /// Whether a key of this address is looked at.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), TooMany> {
        self.check_at(address, Instant::now())
    }

    /// Notes a wrong key, and says how long its answer has to wait.
    pub(super) fn wrong(&self, address: IpAddr, key: &str) -> Duration {
        let (delay, wrong_keys) = self.wrong_at(address, key, Instant::now());
        if let Some(left_out) = self.seldom.now() {
            tracing::warn!(%address, wrong_keys, left_out, "a wrong API key was offered");
        }
        delay
    }

    fn check_at(&self, address: IpAddr, now: Instant) -> Result<(), TooMany> {
        let mut by_address = self.lock();
        let Some(guesser) = by_address.get_mut(&network(address)) else {
            return Ok(());
        };
        guesser.until.retain(|until| *until > now);
        match guesser.until.iter().min() {
            Some(first) if guesser.until.len() >= AT_ONCE => Err(TooMany {
                retry_after: first.saturating_duration_since(now),
            }),
            _ => Ok(()),
        }
    }

    fn wrong_at(&self, address: IpAddr, key: &str, now: Instant) -> (Duration, u32) {
        let mut by_address = self.lock();
        by_address
            .retain(|_, guesser| now.saturating_duration_since(guesser.last) < FORGOTTEN_AFTER);
        let address = network(address);
        if by_address.len() >= MOST_ADDRESSES && !by_address.contains_key(&address) {
            let quietest = by_address.iter().min_by_key(|(_, guesser)| guesser.last);
            if let Some(quietest) = quietest.map(|(address, _)| *address) {
                by_address.remove(&quietest);
            }
        }
        let guesser = by_address.entry(address).or_insert_with(|| Guesser {
            wrong_keys: 0,
            last: now,
            until: Vec::new(),
            known: Vec::new(),
        });
        guesser.last = now;
        let hash = self.hasher.hash_one(key);
        if guesser.known.contains(&hash) {
            return (Duration::ZERO, guesser.wrong_keys);
        }
        if guesser.known.len() == KNOWN_KEYS {
            guesser.known.remove(0);
        }
        guesser.known.push(hash);
        guesser.wrong_keys = guesser.wrong_keys.saturating_add(1);
        let delay = delay_after(guesser.wrong_keys);
        if !delay.is_zero() {
            guesser.until.push(now + delay);
        }
        (delay, guesser.wrong_keys)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Guesser>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Doubles with every wrong key, up to a bound.
fn delay_after(wrong_keys: u32) -> Duration {
    let Some(beyond) = wrong_keys.checked_sub(FREE + 1) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(beyond).unwrap_or(u32::MAX);
    FIRST_DELAY.saturating_mul(factor).min(LONGEST_DELAY)
}

/// One host has a whole network of IPv6 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => IpAddr::V4(mapped),
            None => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn key(number: u32) -> String {
        format!("key {number}")
    }

    #[test]
    fn the_delay_grows_from_the_sixth_key_on_and_is_bounded() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        let delay = |number| guesses.wrong_at(HERE, &key(number), now).0;
        let delays: Vec<_> = (1..=100).map(delay).collect();
        assert_eq!(delays[..5], [Duration::ZERO; 5]);
        assert!(delays[5..].is_sorted());
        assert_eq!(delays[5], FIRST_DELAY);
        assert_eq!(delays[99], LONGEST_DELAY);
    }

    #[test]
    fn the_same_wrong_key_is_no_guess() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for _ in 0..1_000 {
            assert_eq!(guesses.wrong_at(HERE, "old", now).0, Duration::ZERO);
        }
        assert_eq!(guesses.check_at(HERE, now), Ok(()));
    }

    #[test]
    fn an_address_with_many_under_way_waits_and_others_do_not() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for number in 0..100 {
            guesses.wrong_at(HERE, &key(number), now);
        }
        assert!(guesses.check_at(HERE, now).is_err());
        assert_eq!(guesses.check_at("192.0.2.1".parse().unwrap(), now), Ok(()));
        let mapped = "::ffff:127.0.0.1".parse().unwrap();
        assert!(guesses.check_at(mapped, now).is_err());
        assert_eq!(guesses.check_at(HERE, now + LONGEST_DELAY), Ok(()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for number in 0..5_000_u128 {
            let address = Ipv6Addr::from_bits(number << 64).into();
            guesses.wrong_at(address, "x", now);
        }
        assert_eq!(guesses.lock().len(), MOST_ADDRESSES);
        // The addresses of one network are one.
        let before = guesses.lock().len();
        for number in 0..100_u128 {
            let address = Ipv6Addr::from_bits((4_999 << 64) + number).into();
            guesses.wrong_at(address, "x", now);
        }
        assert_eq!(guesses.lock().len(), before);
        guesses.wrong_at(HERE, "x", now + FORGOTTEN_AFTER);
        assert_eq!(guesses.lock().len(), 1);
    }
}
