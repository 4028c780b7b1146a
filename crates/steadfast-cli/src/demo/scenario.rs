//! What each embedded upstream does, and when: a plain function of the seed, the call, and the time.
//!
//! Both instances of an upstream treat the same try of the same call alike, whoever sends it, so that the two clients
//! meet the same luck. Nothing here waits or opens anything.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Tries after the first of the blind client, and the client's own `retries`.
pub(crate) const BLIND_RETRIES: u32 = 3;
/// What the limited upstream names in `Retry-After`, in seconds.
pub(crate) const RETRY_AFTER: u32 = 1;

/// The five upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Always answers.
    Healthy,
    /// One request in ten gets a 503, one in ten a reset connection.
    Flaky,
    /// One answer in ten comes long after the read timeout.
    Slow,
    /// Answers 503 for a third of the time.
    Down,
    /// Every fifth second it takes little, and answers the rest with 429 and `Retry-After`.
    Limited,
}

impl Kind {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Self; 5] = [Self::Healthy, Self::Flaky, Self::Slow, Self::Down, Self::Limited];

    /// The upstream's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Flaky => "flaky",
            Self::Slow => "slow",
            Self::Down => "down",
            Self::Limited => "limited",
        }
    }

    /// How long one try may wait for its answer: the same for both clients.
    pub(crate) const fn try_timeout(self) -> Duration {
        match self {
            Self::Slow => Duration::from_millis(400),
            _ => Duration::from_secs(1),
        }
    }
}

/// What an upstream does with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Answers with this status, so long after the request.
    Answer { status: u16, after: Duration },
    /// Drops the connection with a reset.
    Reset,
}

/// One call of the steady traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its number, from 0: sent as `X-Call-Id`.
    pub(crate) id: u64,
    pub(crate) form: Form,
}

/// What a call looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// May be repeated.
    Get,
    /// May be repeated, because it carries an `Idempotency-Key`.
    PostWithKey,
    /// May not be repeated once it has been sent.
    PostWithoutKey,
}

impl Call {
    /// Call number `id`: of ten calls one is a POST without a key, one a POST with a key, the others are GETs.
    pub(crate) const fn new(id: u64) -> Self {
        let form = match id % 10 {
            3 => Form::PostWithoutKey,
            7 => Form::PostWithKey,
            _ => Form::Get,
        };
        Self { id, form }
    }

    /// The key of a POST that has one.
    pub(crate) fn key(self) -> Option<String> {
        (self.form == Form::PostWithKey).then(|| format!("demo-{}", self.id))
    }
}

/// The run's clock and what lies where on it.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    began: Instant,
    duration: Duration,
    interval: Duration,
    seed: u64,
}

impl Timeline {
    /// A run that begins now.
    pub(crate) fn start(duration: Duration, rate: u32, seed: u64) -> Self {
        Self { began: Instant::now(), duration, interval: Duration::from_secs(1) / rate.max(1), seed }
    }

    /// Since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// When the run began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// How long the traffic lasts.
    pub(crate) fn duration(&self) -> Duration {
        self.duration
    }

    /// Calls to each upstream.
    pub(crate) fn calls(&self) -> u64 {
        u64::try_from(self.duration.as_nanos() / self.interval.as_nanos().max(1)).unwrap_or(u64::MAX)
    }

    /// When call `id` of this upstream starts. The upstreams take turns within the interval.
    pub(crate) fn starts(&self, kind: Kind, id: u64) -> Duration {
        let turn = self.interval * kind as u32 / 5;
        turn + self.interval.saturating_mul(u32::try_from(id).unwrap_or(u32::MAX))
    }

    /// When the upstream `down` is down. Both ends lie midway between two calls, so that no call straddles them.
    pub(crate) fn outage(&self) -> Range<Duration> {
        let edge =
            |percent: u64| self.starts(Kind::Down, self.calls() * percent / 100).saturating_sub(self.interval / 2);
        edge(20)..edge(55)
    }

    /// How long a breaker stays open: 2 s, less in a short run.
    pub(crate) fn cool_down(&self) -> Duration {
        (self.duration / 10).min(Duration::from_secs(2))
    }

    /// What an upstream does with the `nth` request of a call (from 0), the `in_second`th of this second (from 0).
    pub(crate) fn act(&self, kind: Kind, at: Duration, call: u64, nth: u32, in_second: u32) -> Act {
        let luck = mix(mix(mix(self.seed) ^ kind as u64) ^ call) ^ u64::from(nth);
        let luck = mix(luck);
        let usual = Duration::from_millis(2 + luck % 8);
        let ok = Act::Answer { status: 200, after: usual };
        let percent = (luck >> 32) % 100;
        match kind {
            Kind::Healthy => ok,
            Kind::Flaky if percent < 10 => Act::Answer { status: 503, after: usual },
            Kind::Flaky if percent < 20 => Act::Reset,
            Kind::Slow if percent < 10 => Act::Answer { status: 200, after: 3 * kind.try_timeout() },
            Kind::Flaky | Kind::Slow => ok,
            Kind::Down if self.outage().contains(&at) => Act::Answer { status: 503, after: Duration::ZERO },
            Kind::Down => ok,
            Kind::Limited if in_second >= self.limit(at) => Act::Answer { status: 429, after: Duration::ZERO },
            Kind::Limited => ok,
        }
    }

    /// Requests that the limited upstream takes in the second around `at`: three times the traffic, but in every fifth
    /// second only three fifths of it.
    fn limit(&self, at: Duration) -> u32 {
        let rate = (1.0 / self.interval.as_secs_f64()).round();
        let share = if at.as_secs() % 5 == 3 { 0.6 } else { 3.0 };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A rate of at most 100.
        let limit = (rate * share) as u32;
        limit.max(1)
    }
}

/// Spreads every bit of `x` over all (the finaliser of SplitMix64, Steele et al. 2014).
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(secs: u64, rate: u32) -> Timeline {
        Timeline::start(Duration::from_secs(secs), rate, 1)
    }

    #[test]
    fn the_outage_begins_and_ends_between_two_calls() {
        for (secs, rate) in [(20, 10), (5, 5), (600, 100), (7, 13)] {
            let timeline = timeline(secs, rate);
            let outage = timeline.outage();
            let inside = (0..timeline.calls()).filter(|id| outage.contains(&timeline.starts(Kind::Down, *id))).count();
            assert_eq!(inside as u64, timeline.calls() * 55 / 100 - timeline.calls() * 20 / 100, "{secs} {rate}");
            assert!(outage.end < timeline.duration() - 2 * timeline.cool_down(), "{secs} {rate}");
            for id in 0..timeline.calls() {
                let start = timeline.starts(Kind::Down, id);
                let near = |edge: Duration| edge.abs_diff(start) < timeline.interval / 3;
                assert!(!near(outage.start) && !near(outage.end), "{secs} {rate} {id}");
            }
        }
    }

    #[test]
    fn the_same_try_of_the_same_call_meets_the_same_luck() {
        let (one, other) = (timeline(20, 10), timeline(20, 10));
        let mut failures = 0;
        for call in 0..1000 {
            let act = one.act(Kind::Flaky, Duration::ZERO, call, 0, 0);
            assert_eq!(act, other.act(Kind::Flaky, Duration::from_secs(9), call, 0, 7));
            failures += u32::from(!matches!(act, Act::Answer { status: 200, .. }));
        }
        assert!((150..250).contains(&failures), "{failures} of 1000");
        assert!(
            (0..1000).all(|call| matches!(
                one.act(Kind::Healthy, Duration::ZERO, call, 0, 0),
                Act::Answer { status: 200, .. }
            ))
        );
    }

    #[test]
    fn the_limited_upstream_refuses_what_is_too_much_for_its_second() {
        let timeline = timeline(20, 10);
        let refused = |second, nth| {
            matches!(
                timeline.act(Kind::Limited, Duration::from_secs(second), 1, 0, nth),
                Act::Answer { status: 429, .. }
            )
        };
        assert!(
            !refused(0, 29) && refused(0, 30) && !refused(3, 5) && refused(3, 6) && refused(8, 9) && !refused(9, 9)
        );
    }
}
