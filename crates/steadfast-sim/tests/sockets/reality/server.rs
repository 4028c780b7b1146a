//! A real server that plays a model: workers, a queue, service times one after the other, and the triggers. It serves dead
//! work in full, as it does not look whether its client is still there.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_sim::outage::{DeadWork, Discipline, Effect, Of, ServiceTime, Simulation, Trigger, UpstreamModel};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::http1::Connection;

/// What is answered at once, is answered after this.
const FAST: Duration = Duration::from_millis(1);

pub(crate) struct Server {
    model: UpstreamModel,
    triggers: Vec<Trigger>,
    start: Instant,
    workers: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: u64,
    /// Requests that wait or are being served.
    inside: usize,
    /// The work that each request turned out to be, in the order in which they came in.
    work: Vec<Duration>,
    /// The window of the rate limit, and how many came in it.
    window: (u128, u32),
}

enum Fate {
    Answered { status: u16, after: Duration, retry_after: Option<Duration> },
    Hangs,
    Taken { number: usize, work: Duration },
}

impl Server {
    pub(crate) fn new(simulation: &Simulation, start: Instant) -> Self {
        let [model] = &simulation.upstreams[..] else { panic!("one upstream is played") };
        let is_plain =
            model.replicas == 1 && model.discipline == Discipline::Fifo && model.dead_work == DeadWork::Served;
        assert!(is_plain && simulation.triggers.iter().all(|trigger| trigger.of == Of::All && trigger.pulse.is_none()));
        Self {
            model: model.clone(),
            triggers: simulation.triggers.clone(),
            start,
            workers: Arc::new(Semaphore::new(model.workers)),
            state: Mutex::default(),
        }
    }

    /// Serves until it is dropped.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.expect("a connection");
                    stream.set_nodelay(true).expect("TCP");
                    connections.spawn(Arc::clone(&self).connection(stream));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// How many requests came, and what work they were.
    pub(crate) fn seen(&self) -> (u64, Vec<Duration>) {
        let state = self.state.lock().unwrap();
        (state.requests, state.work.clone())
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let mut connection = Connection::new(stream);
        while connection.next().await? {
            match self.receive() {
                Fate::Answered { status, after, retry_after } => {
                    sleep(after).await;
                    connection.answer(status, retry_after).await?;
                }
                Fate::Hangs => return connection.hang().await,
                Fate::Taken { number, work } => {
                    // A task of its own: it goes on when the client has gone.
                    let server = Arc::clone(&self);
                    tokio::spawn(server.work(number, work)).await.expect("it does not panic");
                    connection.answer(200, None).await?;
                }
            }
        }
        Ok(())
    }

    fn receive(&self) -> Fate {
        let now = self.start.elapsed();
        let mut state = self.state.lock().unwrap();
        state.requests += 1;
        let active = self.triggers.iter().filter(|trigger| trigger.from <= now && now < trigger.from + trigger.lasts);
        for trigger in active {
            match trigger.effect {
                Effect::Answer { status, after, retry_after } => return Fate::Answered { status, after, retry_after },
                Effect::Hang => return Fate::Hangs,
                Effect::Slow { .. } => {}
                other => panic!("{other:?} is not played"),
            }
        }
        if let Some(rules) = self.model.rate_limit {
            let window = now.as_nanos() / rules.period.as_nanos();
            if state.window.0 != window {
                state.window = (window, 0);
            }
            state.window.1 += 1;
            if state.window.1 > rules.limit {
                let into = Duration::from_nanos((now.as_nanos() % rules.period.as_nanos()) as u64);
                return Fate::Answered { status: 429, after: FAST, retry_after: Some(rules.period - into) };
            }
        }
        if state.inside >= self.model.workers + self.model.queue.unwrap_or(usize::MAX / 2) {
            return Fate::Answered { status: 503, after: FAST, retry_after: None };
        }
        let ServiceTime::Replayed(times) = &self.model.service else { panic!("recorded times are played") };
        let (number, work) = (state.work.len(), times[state.work.len() % times.len()]);
        state.inside += 1;
        state.work.push(work);
        Fate::Taken { number, work }
    }

    /// Waits for a worker, and does the work at the speed there is.
    async fn work(self: Arc<Self>, number: usize, work: Duration) {
        // Fair: first in, first out.
        let worker = self.workers.acquire().await.expect("it is never closed");
        let began = self.start.elapsed();
        sleep_until(self.start + self.end_of(began, work)).await;
        let done = self.done_between(began, self.start.elapsed());
        let mut state = self.state.lock().unwrap();
        state.work[number] = done;
        state.inside -= 1;
        drop(state);
        drop(worker);
    }

    /// When so much work is done that began then.
    fn end_of(&self, began: Duration, work: Duration) -> Duration {
        let (mut at, mut left) = (began, work.as_secs_f64());
        loop {
            let speed = self.speed(at);
            let edges = self.triggers.iter().flat_map(|trigger| [trigger.from, trigger.from + trigger.lasts]);
            let next = edges.filter(|edge| *edge > at).min();
            let until = next.map_or(f64::INFINITY, |next| (next - at).as_secs_f64() * speed);
            match next {
                Some(next) if until < left => (at, left) = (next, left - until),
                _ => return at + Duration::from_secs_f64(left / speed),
            }
        }
    }

    /// How much work is done from then to then.
    fn done_between(&self, from: Duration, to: Duration) -> Duration {
        let mut edges: Vec<Duration> =
            self.triggers.iter().flat_map(|trigger| [trigger.from, trigger.from + trigger.lasts]).collect();
        edges.retain(|edge| *edge > from && *edge < to);
        edges.extend([from, to]);
        edges.sort();
        edges.windows(2).map(|part| (part[1] - part[0]).mul_f64(self.speed(part[0]))).sum()
    }

    fn speed(&self, at: Duration) -> f64 {
        let active = self.triggers.iter().filter(|trigger| trigger.from <= at && at < trigger.from + trigger.lasts);
        active.map(|trigger| if let Effect::Slow { speed } = trigger.effect { speed } else { 1.0 }).product()
    }
}
