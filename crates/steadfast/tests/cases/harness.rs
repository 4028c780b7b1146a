//! A client over a scripted upstream, with a clock that jumps from timer to timer.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use steadfast::client::ClientBuilder;
use steadfast::report::WaitReason;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{Error, ErrorKind, Event, Report, Response, ServiceClient};

pub(crate) type CallResult = Result<Response, Error>;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) upstream: Script,
    pub(crate) client: ServiceClient,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

impl World {
    /// A fresh client with the defaults.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::with(steps, |builder| builder)
    }

    /// A fresh client, configured.
    pub(crate) fn with(
        steps: impl IntoIterator<Item = Step>,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Self {
        let clock = VirtualClock::new();
        let events = Arc::new(Mutex::new(Vec::new()));
        let builder = configure(ServiceClient::builder("http://billing.test/api").name("billing"));
        // The scripted upstream ends a hang by the client's own read timeout, as the pool would.
        let probe = builder_read_timeout(&clock, steps, builder, &events);
        Self { clock, upstream: probe.0, client: probe.1, events }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.clock.run(future).expect("the call waits only for the clock")
    }

    pub(crate) async fn wait(&self, duration: Duration) {
        steadfast::Clock::from(self.clock.clone()).wait(duration).await;
    }

    pub(crate) fn get(&self) -> CallResult {
        self.run(self.client.get("/x").send())
    }

    pub(crate) fn post(&self) -> CallResult {
        self.run(self.client.post("/x").body("abc").send())
    }

    /// So many GETs at once.
    pub(crate) fn get_many(&self, count: usize) -> Vec<CallResult> {
        self.run(join_all((0..count).map(|_| self.client.get("/x").send())))
    }

    pub(crate) fn state(&self) -> &'static str {
        use steadfast::policy::breaker::State;
        match self.client.snapshot().breaker.state {
            State::Closed => "closed",
            State::Open => "open",
            State::HalfOpen => "half_open",
        }
    }

    /// Nothing may be left behind, whatever happened.
    pub(crate) fn assert_at_rest(&self) {
        let snapshot = self.client.snapshot();
        assert_eq!(snapshot.line.in_use, 0, "a slot is lost");
        assert_eq!(snapshot.line.queued, 0, "a waiter is lost");
        assert_eq!(self.upstream.in_flight(), 0, "an attempt goes on");
        assert_eq!(self.clock.armed_timers(), 0, "a timer is left");
    }
}

fn builder_read_timeout(
    clock: &VirtualClock,
    steps: impl IntoIterator<Item = Step>,
    builder: ClientBuilder,
    events: &Arc<Mutex<Vec<Event>>>,
) -> (Script, ServiceClient) {
    let script = Script::new(clock.clone(), steps);
    let sink = Arc::clone(events);
    let client = builder
        .clock(clock.clone())
        .seed(7)
        .transport(script.clone())
        .on_event(move |event| sink.lock().unwrap().push(event.clone()))
        .build()
        .expect("valid settings");
    script.set_read_timeout(client.settings().read_timeout);
    (script, client)
}

pub(crate) fn status(result: &CallResult) -> u16 {
    result.as_ref().expect("a response").status().as_u16()
}

pub(crate) fn kind(result: &CallResult) -> ErrorKind {
    result.as_ref().expect_err("an error").kind()
}

pub(crate) fn report(result: &CallResult) -> &Report {
    match result {
        Ok(response) => response.report(),
        Err(error) => error.report(),
    }
}

pub(crate) fn ended(result: &CallResult) -> &'static str {
    report(result).ended().name()
}

/// The waits of one reason, in order.
pub(crate) fn waits(result: &CallResult, reason: WaitReason) -> Vec<Duration> {
    report(result).waits().iter().filter(|wait| wait.reason == reason).map(|wait| wait.duration).collect()
}

pub(crate) fn outcomes(result: &CallResult) -> Vec<String> {
    report(result).attempts().map(|attempt| attempt.outcome.name().into_owned()).collect()
}
