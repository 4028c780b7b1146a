//! A client over a scripted upstream whose calls are counted by a recorder of its own. Each test has a name of its own for
//! its upstream: gauges are sums over all of the process that share one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::with_local_recorder;
use steadfast::metrics::refresh;
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{ClientBuilder, Error, Response, ServiceClient};

use crate::recorder::Kept;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) kept: Arc<Kept>,
    pub(crate) client: ServiceClient,
}

/// A client of this name, built while the recorder was there.
pub(crate) fn world(
    name: &str,
    steps: impl IntoIterator<Item = Step>,
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> World {
    let (clock, kept) = (VirtualClock::new(), Kept::new());
    let builder = ServiceClient::builder("http://billing.test").name(name).seed(7).clock(clock.clone());
    let builder = configure(builder).transport(Script::new(clock.clone(), steps));
    let client = with_local_recorder(&kept, || builder.build().unwrap());
    World { clock, kept, client }
}

impl World {
    pub(crate) fn get(&self) -> Result<Response, Error> {
        self.clock.run(self.client.get("/x?key=S3CR3T").bearer_auth("S3CR3T").send()).unwrap()
    }

    pub(crate) async fn wait(&self, duration: Duration) {
        steadfast::Clock::from(self.clock.clone()).wait(duration).await;
    }

    pub(crate) fn refresh(&self) {
        refresh_at(&self.kept);
    }
}

/// Refreshes what this recorder shows. One test at a time: while one is looked at by another's refresh, a client that is gone
/// is not gone yet.
pub(crate) fn refresh_at(kept: &Arc<Kept>) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    with_local_recorder(kept, refresh);
}
