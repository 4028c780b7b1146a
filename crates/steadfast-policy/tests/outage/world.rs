//! What the clients meet: spells of weather, and one server behind one queue.

/// Nanoseconds.
pub(crate) type Nanos = u64;

pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// From the start of one blip to the start of the next.
pub(crate) const BLIP_PERIOD: Nanos = 20 * SECOND;

/// Requests a second that the server does at full speed.
pub(crate) const CAPACITY: f64 = 1000.0;

/// What is wrong for a while. The shares are of attempts, and independent.
///
/// With more than one replica all of it happens to the first alone, but for the arrivals and the blips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// The server's speed, 1 is full. At 0 it stands still and keeps its backlog.
    pub(crate) speed: f64,
    /// Calls that arrive, as a multiple of the load.
    pub(crate) arrivals: f64,
    /// Attempts that are answered 503 at once, and never reach the server.
    pub(crate) refused: f64,
    /// Attempts that are never answered, and never reach the server.
    pub(crate) hung: f64,
    /// Attempts that are served like any other, and then answered 503.
    pub(crate) costly: f64,
    /// For so long at the start of every 20 s each attempt is answered 503 at once.
    pub(crate) blip: Nanos,
}

impl Weather {
    pub(crate) const FAIR: Self = Self { speed: 1.0, arrivals: 1.0, refused: 0.0, hung: 0.0, costly: 0.0, blip: 0 };
    pub(crate) const SLOW: Self = Self { speed: 0.3, ..Self::FAIR };
    pub(crate) const FROZEN: Self = Self { speed: 0.0, ..Self::FAIR };
    pub(crate) const SPIKE: Self = Self { arrivals: 1.5, ..Self::FAIR };
    pub(crate) const DOWN: Self = Self::noise(1.0);
    pub(crate) const HANGING: Self = Self::hangs(1.0);

    pub(crate) const fn noise(share: f64) -> Self {
        Self { refused: share, ..Self::FAIR }
    }

    pub(crate) const fn hangs(share: f64) -> Self {
        Self { hung: share, ..Self::FAIR }
    }

    pub(crate) const fn costly(share: f64) -> Self {
        Self { costly: share, ..Self::FAIR }
    }

    /// Slower than the load demands: `excess` times as much arrives as it can do.
    pub(crate) const fn brownout(excess: f64, load: f64) -> Self {
        Self { speed: load / excess, ..Self::FAIR }
    }

    pub(crate) const fn blips(length: Nanos) -> Self {
        Self { blip: length, ..Self::FAIR }
    }

    /// As it is for the replicas that nothing is wrong with.
    const fn elsewhere(self) -> Self {
        Self { arrivals: self.arrivals, blip: self.blip, ..Self::FAIR }
    }
}

/// Weather and how many seconds it lasts.
#[derive(Clone, Copy, Debug)]
struct Spell {
    seconds: u64,
    weather: Weather,
    /// At the other replicas.
    elsewhere: Weather,
}

/// A run from its first second to its last: the warm-up, the trigger, and what comes after.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Calls per second, as a share of the capacity.
    pub(crate) load: f64,
    /// Clients that the calls are spread over.
    pub(crate) clients: u32,
    /// Servers that share the capacity. Each attempt goes to one at random.
    pub(crate) replicas: u32,
    spells: [Spell; 3],
}

impl Scenario {
    pub(crate) fn new(load: f64, clients: u32, spells: [(u64, Weather); 3]) -> Self {
        let spells = spells.map(|(seconds, weather)| Spell { seconds, weather, elsewhere: weather.elsewhere() });
        Self { load, clients, replicas: 1, spells }
    }

    /// The second in which the trigger begins.
    pub(crate) fn trigger(&self) -> usize {
        self.spells[0].seconds as usize
    }

    /// The second in which it ends.
    pub(crate) fn end_of_trigger(&self) -> usize {
        self.trigger() + self.spells[1].seconds as usize
    }

    /// The second in which the run ends.
    pub(crate) fn end(&self) -> usize {
        self.end_of_trigger() + self.spells[2].seconds as usize
    }

    /// The same in front of three servers, of which the first is hit.
    pub(crate) fn with_three_replicas(self) -> Self {
        Self { replicas: 3, ..self }
    }

    /// The weather at one replica.
    pub(crate) fn weather(&self, now: Nanos, replica: usize) -> &Weather {
        let second = (now / SECOND) as usize;
        let spell = usize::from(second >= self.trigger()) + usize::from(second >= self.end_of_trigger());
        let spell = &self.spells[spell];
        if replica == 0 { &spell.weather } else { &spell.elsewhere }
    }

    /// When the weather changes next.
    fn next_change(&self, now: Nanos) -> Nanos {
        match (now / SECOND) as usize {
            second if second < self.trigger() => self.trigger() as u64 * SECOND,
            second if second < self.end_of_trigger() => self.end_of_trigger() as u64 * SECOND,
            _ => Nanos::MAX,
        }
    }
}

/// One worker behind an unbounded queue, first in, first out. It serves every request in full, also those whose client
/// has given up.
#[derive(Default)]
pub(crate) struct Server {
    idle_from: Nanos,
}

impl Server {
    /// Queues a request that takes `work` at full speed. The instant at which it is done.
    pub(crate) fn serve(&mut self, scenario: &Scenario, replica: usize, now: Nanos, work: f64) -> Nanos {
        let mut at = self.idle_from.max(now);
        let mut left = work;
        loop {
            let speed = scenario.weather(at, replica).speed;
            let change = scenario.next_change(at);
            let possible = (change - at) as f64 * speed;
            if left <= possible {
                at += (left / speed) as Nanos;
                break;
            }
            left -= possible;
            at = change;
        }
        self.idle_from = at;
        at
    }
}
