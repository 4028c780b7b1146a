//! What an operation is told when it begins.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What an attempt knows of its call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The number of this attempt; the first is 1.
    pub attempt: u32,
    /// What was left until the call must be over when the attempt began. The guard drops the attempt then; a driver that
    /// has a timeout of its own may as well be told.
    pub time_left: Duration,
    pub(crate) key: KeyNumber,
}

/// The number that a call's key is made of, once somebody asks: most operations never do.
#[derive(Clone, Copy)]
pub(crate) enum KeyNumber {
    /// Of a thread's stretch, where neighbours look alike.
    Counted(u128),
    /// Drawn from a seed.
    Drawn(u128),
}

impl KeyNumber {
    const fn key(self) -> IdempotencyKey {
        match self {
            Self::Counted(number) => IdempotencyKey(mixed(number)),
            Self::Drawn(number) => IdempotencyKey(number),
        }
    }
}

impl fmt::Debug for KeyNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

impl Context {
    /// A key that is the same for every attempt of a call, and no other call's: to be handed to the provider, so that it
    /// can tell a repetition from a second order (11.8). 128 bits, which no other process draws either.
    pub const fn idempotency_key(&self) -> IdempotencyKey {
        self.key.key()
    }
}

/// A call's own key; as text, a version 4 UUID (RFC 9562, section 5.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(u128);

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Version and variant are six fixed bits.
        let bits = (self.0 & !(0xf << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
        let (a, b, c) = ((bits >> 96) as u32, (bits >> 80) as u16, (bits >> 64) as u16);
        let (d, e) = ((bits >> 48) as u16, (bits as u64) & 0xffff_ffff_ffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Where a guard's keys come from.
#[derive(Debug)]
pub(super) enum Keys {
    /// Of this thread's own stretch of all numbers, which begins where the system's randomness says.
    Random,
    /// Reproducible, for tests.
    Seeded(Mutex<fastrand::Rng>),
}

thread_local! {
    static NEXT: Cell<u128> = Cell::new(start());
}

/// 128 bits of the system's randomness, by way of the keys of std's hasher.
fn start() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(std::thread::current().id()));
    (half() << 64) | half()
}

impl Keys {
    pub(super) fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::Random, |seed| Self::Seeded(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    #[inline]
    pub(super) fn next(&self) -> KeyNumber {
        match self {
            // A thread that is being torn down has no cell any more, and starts anew.
            Self::Random => KeyNumber::Counted(
                NEXT.try_with(|next| next.replace(next.get().wrapping_add(1))).unwrap_or_else(|_| start()),
            ),
            Self::Seeded(random) => KeyNumber::Drawn(random.lock().unwrap_or_else(PoisonError::into_inner).u128(..)),
        }
    }
}

/// Neighbours look nothing like each other, and no two numbers become the same: a product with an odd number and a shift
/// can both be undone.
const fn mixed(mut number: u128) -> u128 {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    number ^= number >> 64;
    number = number.wrapping_mul(ODD);
    number ^= number >> 61;
    number = number.wrapping_mul(ODD);
    number ^ (number >> 64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn c11_8_keys_are_version_4_uuids_and_each_is_another() {
        let keys = Keys::new(None);
        let texts: HashSet<String> = (0..1_000).map(|_| keys.next().key().to_string()).collect();
        assert_eq!(texts.len(), 1_000, "neighbours differ within the bits that are shown");
        for text in &texts {
            let parts: Vec<_> = text.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
            assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{text}");
        }
        // Another thread has another stretch.
        let other = std::thread::spawn(|| Keys::new(None).next().key().to_string()).join().unwrap_or_default();
        assert!(!other.is_empty() && !texts.contains(&other));
    }

    #[test]
    fn a_seed_gives_the_same_keys_each_time() {
        let two = |seed| {
            let keys = Keys::new(Some(seed));
            [keys.next().key(), keys.next().key()]
        };
        assert_eq!(two(7), two(7));
        assert_ne!(two(7)[0], two(7)[1]);
        assert_ne!(two(7), two(8));
    }
}
