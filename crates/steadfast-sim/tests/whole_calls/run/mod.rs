//! One world, as its plan says: what was seen in it.

mod calls;
mod upstream;

use std::rc::Rc;
use std::sync::Arc;

use steadfast::policy::Time;
use steadfast::{ClientBuilder, Clock, Event, Guard, ServiceClient, Snapshot};
use steadfast_sim::World;

use crate::log::{Entry, Log, Sample, What};
use crate::plan::{Act, Edge, Plan};
use upstream::Upstream;

/// The client, whichever it is.
#[derive(Clone)]
enum Client {
    Http(ServiceClient),
    Guard(Guard, Upstream),
}

impl Client {
    fn snapshot(&self) -> Snapshot {
        match self {
            Self::Http(client) => client.snapshot(),
            Self::Guard(guard, _) => guard.snapshot(),
        }
    }

    async fn close(&self) {
        match self {
            Self::Http(client) => client.close().await,
            Self::Guard(guard, _) => guard.close().await,
        }
    }

    /// What an operator does and does not wait for.
    fn act(&self, act: Act, plan: &Plan) {
        match (self, act) {
            (Self::Http(client), Act::ForceOpen) => client.force_open(),
            (Self::Http(client), Act::ForceClose) => client.force_close(),
            (Self::Http(client), Act::Reset) => client.reset_breaker(),
            (Self::Guard(guard, _), Act::ForceOpen) => guard.force_open(),
            (Self::Guard(guard, _), Act::ForceClose) => guard.force_close(),
            (Self::Guard(guard, _), Act::Reset) => guard.reset_breaker(),
            (Self::Http(client), Act::Reload(number)) => {
                client.reload(plan.configs[number].settings()).unwrap();
            }
            (Self::Guard(..), Act::Reload(_)) | (_, Act::Close) => {}
        }
    }
}

/// What the people of a world share.
struct Scene {
    plan: Arc<Plan>,
    clock: Clock,
    log: Log,
    client: Client,
}

/// Runs the plan. `Err`: tasks were left that nothing could wake, and the log up to then.
pub(crate) fn run(plan: &Arc<Plan>) -> Result<Vec<Entry>, Vec<Entry>> {
    let world = World::new(plan.seed);
    let scene = Rc::new(Scene::new(&world, Arc::clone(plan)));
    for call in (0..plan.callers.len()).filter(|call| plan.callers[*call].is_some()) {
        world.spawn(calls::live(Rc::clone(&scene), call));
    }
    for &(at, act) in &plan.acts {
        world.spawn(operate(Rc::clone(&scene), Time::ZERO + at, act));
    }
    for &at in &plan.samples {
        world.run_until(Time::ZERO + at);
        let sample = scene.sample(&world);
        scene.log.note(What::Sampled(sample));
    }
    let ended = world.run();
    if ended.is_ok() {
        let sample = scene.sample(&world);
        scene.log.note(What::Over(sample));
        // Nobody is left to wait for: at once, or not before the latest deadline that there could be.
        let last = Rc::clone(&scene);
        world.spawn(async move {
            last.client.close().await;
            last.log.note(What::AllEnded);
        });
        let _ = world.run();
    }
    let log = scene.log.take();
    if ended.is_ok() { Ok(log) } else { Err(log) }
}

async fn operate(scene: Rc<Scene>, at: Time, act: Act) {
    scene.clock.wait_until(at).await;
    scene.log.note(What::Operator(act));
    scene.client.act(act, &scene.plan);
    if act == Act::Close {
        scene.client.close().await;
        scene.log.note(What::AllEnded);
    }
}

impl Scene {
    fn new(world: &World, plan: Arc<Plan>) -> Self {
        let log = Log::new(world.clock());
        let clock = Clock::from(world.clock().clone());
        let upstream = Upstream::new(clock.clone(), log.clone(), Arc::clone(&plan));
        let seed = world.seed_of("client");
        let told = log.clone();
        let hook = move |event: &Event| {
            if let Event::Transition { transition, .. } = event {
                told.note(What::Told(*transition));
            }
        };
        let config = &plan.configs[0];
        let client = match plan.edge {
            Edge::Http => {
                let builder = ClientBuilder::from_settings(config.settings()).transport(upstream);
                Client::Http(builder.clock(clock.clone()).seed(seed).on_event(hook).build().unwrap())
            }
            Edge::Guard => {
                let guard = config.guard().clock(clock.clone()).seed(seed).on_event(hook).build().unwrap();
                Client::Guard(guard, upstream)
            }
        };
        Self { plan, clock, log, client }
    }

    fn sample(&self, world: &World) -> Sample {
        let snapshot = self.client.snapshot();
        Sample {
            breaker: snapshot.breaker.state,
            slots: snapshot.line.in_use,
            queued: snapshot.line.queued,
            requests: snapshot.budget.requests,
            retries: snapshot.budget.retries,
            timers: world.clock().armed_timers(),
        }
    }
}
