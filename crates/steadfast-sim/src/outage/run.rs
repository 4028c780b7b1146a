//! Runs a simulation: builds the world, lets the calls come, and counts.
//!
//! Open arrivals are driven from outside of the world, one after the other, so that a run holds only the calls that are in
//! flight. What is due at an arrival's instant happens before it.

use std::cell::RefCell;
use std::fmt;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use steadfast::client::BuildError;
use steadfast::policy::Time;
use steadfast::{Clock, ServiceClient};

use super::engine::{Engine, Onward};
use super::ledger::{Level, Series};
use super::link::paths;
use super::policy::{Member, Policy};
use super::recorder::{Breakers, Recorder};
use super::results::{Run, since_start};
use super::simulation::{InvalidSimulation, Simulation};
use super::trigger::{Effect, Trigger};
use super::workload::{Arrival, Arrivals, ROUTES, Tide, Workload};
use crate::{Spawner, World};

/// A simulation that could not be run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// It makes no sense.
    Invalid(InvalidSimulation),
    /// A client could not be built.
    Client(BuildError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Client(error) => write!(f, "a client could not be built: {error}"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(invalid) => Some(invalid),
            Self::Client(error) => Some(error),
        }
    }
}

impl Simulation {
    /// Runs it once with clients of this policy. Of one seed the arrivals are the same for every policy.
    ///
    /// # Errors
    /// [`RunError`]: it makes no sense, or the policy's clients cannot be built.
    pub fn run(&self, policy: &Policy, seed: u64) -> Result<Run, RunError> {
        self.check().map_err(RunError::Invalid)?;
        let mut stage = Stage::new(self, policy, seed).map_err(RunError::Client)?;
        match &self.workload {
            Workload::Closed { callers, think } => stage.run_closed(*callers, *think),
            _ => stage.run_open(),
        }
        Ok(stage.finish(policy, seed))
    }
}

/// A world with everything in it.
struct Stage<'a> {
    simulation: &'a Simulation,
    world: World,
    clock: Clock,
    engines: Vec<Engine>,
    clients: Vec<ServiceClient>,
    breakers: Breakers,
    recorder: Rc<RefCell<Recorder>>,
    paths: Arc<[String]>,
    /// How many intervals' levels were taken.
    taken: u32,
}

impl<'a> Stage<'a> {
    fn new(simulation: &'a Simulation, policy: &Policy, seed: u64) -> Result<Self, BuildError> {
        let world = World::new(seed);
        let clock = Clock::from(world.clock().clone());
        let (breakers, paths) = (Breakers::new(), paths());
        let engines: Vec<Engine> =
            (0..simulation.upstreams.len()).filter_map(|hop| engine(simulation, &world, hop)).collect();
        let fleet = |hop: usize, engine: &Engine, count: usize| {
            let members = (0..count).map(|number| {
                let (seed, hook) = (world.seed_of(&format!("client {hop} {number}")), breakers.hook(hop, number));
                policy.build(Member { number, hop, seed, settings: &policy.settings, clock: &clock, engine, hook })
            });
            members.collect::<Result<Vec<_>, _>>()
        };
        let mut clients = Vec::new();
        for (hop, engine) in engines.iter().enumerate() {
            if hop == 0 {
                clients = fleet(hop, engine, simulation.clients)?;
            }
            let next = match (engines.get(hop + 1), simulation.upstreams.get(hop)) {
                (Some(next), Some(model)) => fleet(hop + 1, next, model.replicas)?,
                _ => Vec::new(),
            };
            world.spawn(drive(engine.clone(), clock.clone(), world.spawner(), next, Arc::clone(&paths)));
        }
        let recorder = Rc::new(RefCell::new(Recorder::new(simulation)));
        Ok(Self { simulation, world, clock, engines, clients, breakers, recorder, paths, taken: 0 })
    }

    fn run_open(&mut self) {
        let simulation = self.simulation;
        let random = self.world.random("arrivals");
        let (clients, lasts) = (simulation.clients, simulation.lasts);
        for arrival in Arrivals::new(&simulation.workload, &simulation.triggers, clients, lasts, random) {
            self.go_to(arrival.at);
            self.call(arrival);
        }
    }

    fn call(&self, arrival: Arrival) {
        let Some(client) = self.clients.get(arrival.client) else { return };
        let path = self.paths.get(usize::from(arrival.route)).map_or("/", String::as_str);
        let call = client.get(path).send();
        let (clock, recorder) = (self.clock.clone(), Rc::clone(&self.recorder));
        recorder.borrow_mut().begin(arrival.at);
        self.world.spawn(async move {
            let result = call.await;
            recorder.borrow_mut().end(arrival.at, clock.now(), &result);
        });
    }

    fn run_closed(&mut self, callers: usize, think: Duration) {
        let tide = Rc::new(Tide::new(&self.simulation.triggers));
        let end = Time::ZERO + self.simulation.lasts;
        for (number, client) in self.clients.iter().enumerate() {
            for caller in 0..callers {
                let mut random = self.world.random(&format!("caller {number} {caller}"));
                let (client, clock, tide) = (client.clone(), self.clock.clone(), Rc::clone(&tide));
                let (recorder, paths) = (Rc::clone(&self.recorder), Arc::clone(&self.paths));
                self.world.spawn(async move {
                    loop {
                        let thought = think.as_secs_f64() * super::upstream::exponential(&mut random);
                        let began = since_start(clock.now()).as_secs_f64();
                        let thought = tide.after(began, thought).and_then(|at| Duration::try_from_secs_f64(at).ok());
                        let Some(thought) = thought else { return };
                        clock.wait_until(Time::ZERO + thought).await;
                        let arrived = clock.now();
                        if arrived >= end {
                            return;
                        }
                        let path = paths.get(random.usize(0..usize::from(ROUTES))).map_or("/", String::as_str);
                        recorder.borrow_mut().begin(arrived);
                        let result = client.get(path).send().await;
                        recorder.borrow_mut().end(arrived, clock.now(), &result);
                    }
                });
            }
        }
    }

    /// Lets everything happen up to this instant, and takes the levels at the ends of intervals on the way.
    fn go_to(&mut self, at: Time) {
        loop {
            let end = Time::ZERO + self.simulation.interval.saturating_mul(self.taken.saturating_add(1));
            if end > at || self.taken as usize >= self.simulation.interval_count() {
                break;
            }
            self.world.run_until(end);
            let queue = self.engines.iter().map(Engine::queue).collect();
            let calls = self.recorder.borrow().pending;
            let (open, half_open) = self.breakers.with(|changes| (changes.open, changes.half_open));
            self.recorder.borrow_mut().levels.push(Level { queue, calls, open, half_open });
            self.taken += 1;
        }
        self.world.run_until(at);
    }

    /// Ends the calls that are in flight; each has a deadline.
    fn finish(mut self, policy: &Policy, seed: u64) -> Run {
        let simulation = self.simulation;
        let last = simulation.interval.saturating_mul(u32::try_from(simulation.interval_count()).unwrap_or(u32::MAX));
        self.go_to(Time::ZERO + last);
        while self.recorder.borrow().pending > 0 {
            let Some(next) = self.world.clock().next_timer() else { break };
            self.world.run_until(next);
        }
        let (upstreams, drained) = self.engines.iter().map(|engine| engine.ledger().into_parts()).unzip();
        let mut recorder = self.recorder.borrow_mut();
        let (calls, _) = std::mem::replace(&mut recorder.calls, Series::new(Duration::ZERO, 0)).into_parts();
        let (changes, left_out) =
            self.breakers.with(|changes| (std::mem::take(&mut changes.changes), changes.left_out));
        Run {
            policy: policy.name.clone(),
            seed,
            clients: simulation.clients,
            interval: simulation.interval,
            calls,
            levels: std::mem::take(&mut recorder.levels),
            upstreams,
            drained,
            phases: std::mem::take(&mut recorder.phases),
            breakers: changes,
            breakers_left_out: left_out,
            warm_up: simulation.warm_up,
            trouble: simulation.trouble(),
            ended: since_start(recorder.ended),
        }
    }
}

/// The upstream at this place of the chain.
fn engine(simulation: &Simulation, world: &World, hop: usize) -> Option<Engine> {
    let model = simulation.upstreams.get(hop)?;
    let falls_here = |trigger: &&Trigger| trigger.hop == hop && !matches!(trigger.effect, Effect::Load { .. });
    let triggers = simulation.triggers.iter().filter(falls_here).cloned().collect();
    let onward = (hop + 1 < simulation.upstreams.len()).then_some(simulation.holds_worker);
    let random = world.random(&format!("upstream {hop}"));
    let ledger = Series::new(simulation.interval, simulation.interval_count());
    Some(Engine::new(model, triggers, onward, random, ledger))
}

/// Keeps an upstream going while nobody asks it anything, and sends what it has for the next one. `next` holds the client
/// of each of its replicas.
async fn drive(engine: Engine, clock: Clock, spawner: Spawner, next: Vec<ServiceClient>, paths: Arc<[String]>) {
    let mut to_send = Vec::new();
    loop {
        let until = engine.turn(clock.now(), &mut to_send);
        for onward in to_send.drain(..) {
            if let Some(client) = next.get(onward.replica) {
                let path = paths.get(usize::from(onward.route)).map_or("/", String::as_str);
                spawner.spawn(ask_next(engine.clone(), clock.clone(), client.clone(), path.to_owned(), onward));
            }
        }
        let mut sleep = pin!(clock.limit(until));
        std::future::poll_fn(|cx| match engine.poll_news(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(cx),
        })
        .await;
    }
}

/// A replica calls the next upstream on behalf of one of its requests. It fails where that fails.
async fn ask_next(engine: Engine, clock: Clock, client: ServiceClient, path: String, onward: Onward) {
    let mut call = client.get(&path);
    if onward.deadline < Time::MAX {
        call = call.timeout(clock.now().until(onward.deadline));
    }
    let mut call = pin!(call.send());
    let result = std::future::poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => engine.poll_over(cx, onward.job).map(|()| None),
    })
    .await;
    if let Some(result) = result {
        let status = result.map_or(503, |response| response.status().as_u16());
        engine.return_from_onward(clock.now(), onward.job, status);
    }
}

#[cfg(test)]
mod tests;
