//! Tasks and a clock on one thread: who is ready runs, in the order in which they were woken; when nobody is, the clock
//! jumps to the next timer.
//!
//! Decides nothing of what it runs. It is deterministic because all there is to order by is ordered: tasks by when they
//! were woken, timers by their instant and then by when they were armed, chance by a seed. What could break that is not to
//! be used inside: threads, the system's clock, `HashMap`'s iteration order.
//!
//! Limits: a task that wakes itself for ever at one instant is never done, as in any executor; a run is one thread, so that
//! several runs, not parts of one, make use of several cores.

use std::fmt;
use std::future::Future;
use std::rc::{Rc, Weak};
use std::time::Duration;

use async_executor::LocalExecutor;
use steadfast::policy::Time;
use steadfast::testing::VirtualClock;

/// A simulated world: a virtual clock, and the tasks that live by it.
///
/// ```
/// use std::time::Duration;
///
/// use steadfast::testing::{Script, Step};
/// use steadfast::{Clock, ServiceClient};
/// use steadfast_sim::World;
///
/// let world = World::new(7);
/// let upstream = Script::new(world.clock().clone(), [Step::status(503), Step::status(200).after(Duration::from_millis(80))]);
/// let client = ServiceClient::builder("http://billing").transport(upstream.clone()).clock(world.clock().clone()).seed(7).build()?;
/// for _ in 0..100 {
///     let client = client.clone();
///     world.spawn(async move { assert!(client.get("/invoices/7").send().await.is_ok()) });
/// }
/// world.run().map_err(|stalled| stalled.to_string())?;
/// assert_eq!(upstream.requests(), 101);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct World {
    clock: VirtualClock,
    // Last, so that tasks are dropped while the clock is there.
    executor: Rc<LocalExecutor<'static>>,
    seed: u64,
}

/// Tasks are left, and nothing that could wake one: they wait for something else than the clock of their world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// When it happened.
    pub at: Time,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.since(Time::ZERO).as_secs_f64();
        write!(
            f,
            "at {seconds} s tasks are left and no timer is armed: they wait for something outside of the simulation"
        )
    }
}

impl std::error::Error for Stalled {}

impl World {
    /// An empty world at the origin of its clock. All chance in it comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { clock: VirtualClock::new(), executor: Rc::new(LocalExecutor::new()), seed }
    }

    /// Its clock: build clients and guards on it (`.clock(world.clock().clone())`), and move it only through the world.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Time since its origin.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// A source of chance of its own for what has this name: what one part draws does not change what another does.
    pub fn random(&self, name: &str) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed_of(name))
    }

    /// The seed of what has this name.
    pub fn seed_of(&self, name: &str) -> u64 {
        // FNV-1a over the name, then the finalizer of splitmix64 over both, so that near seeds are far apart.
        let named = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let mut mixed = named ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Starts a task. It first runs with the next `run`.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.executor.spawn(task).detach();
    }

    /// Starts a task that can be cancelled: dropping the handle drops the task; awaiting it gives its output.
    #[must_use = "dropping the handle cancels the task"]
    pub fn start<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> Task<T> {
        self.executor.spawn(task)
    }

    /// Starts tasks from inside of tasks.
    pub fn spawner(&self) -> Spawner {
        Spawner(Rc::downgrade(&self.executor))
    }

    /// Runs until every task has ended.
    ///
    /// # Errors
    /// [`Stalled`] when some are left that nothing here can wake.
    pub fn run(&self) -> Result<(), Stalled> {
        loop {
            self.settle();
            if self.executor.is_empty() {
                return Ok(());
            }
            if !self.clock.advance_to_next_timer() {
                return Err(Stalled { at: self.now() });
            }
        }
    }

    /// Runs what happens up to and at `at`, and leaves the clock there. Tasks that are not done stay.
    pub fn run_until(&self, at: Time) {
        self.settle();
        while self.clock.next_timer().is_some_and(|next| next <= at) {
            self.clock.advance_to_next_timer();
            self.settle();
        }
        let left = at.since(self.now());
        self.clock.advance(left);
    }

    /// The same for `duration` from now.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(self.now() + duration);
    }

    /// Lets everybody run who can without the clock.
    fn settle(&self) {
        while self.executor.try_tick() {}
    }
}

/// Starts tasks in a [`World`], for those who live in it and cannot hold on to it.
#[derive(Clone, Debug)]
pub struct Spawner(Weak<LocalExecutor<'static>>);

impl Spawner {
    /// Starts a task. In a world that is gone nothing happens.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        if let Some(executor) = self.0.upgrade() {
            executor.spawn(task).detach();
        }
    }
}

/// A task of a [`World`].
pub use async_executor::Task;

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("now", &self.now()).field("seed", &self.seed).finish_non_exhaustive()
    }
}
