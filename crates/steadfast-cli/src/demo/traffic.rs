//! The steady traffic: the same calls at the same instants for both clients, whatever became of the earlier ones.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::scenario::{Call, Kind, Timeline};
use super::tally::{Ended, Phase, Tally};

/// Makes every call of the run through `client` and returns when the last has ended.
pub(crate) async fn run<C, F>(kind: Kind, timeline: Timeline, tally: Arc<Tally>, client: C)
where
    C: Fn(Call) -> F,
    F: Future<Output = Ended> + Send + 'static,
{
    let mut calls = JoinSet::new();
    for id in 0..timeline.calls() {
        let starts = timeline.starts(kind, id);
        tokio::time::sleep_until((timeline.began() + starts).into()).await;
        let phase = phase(kind, &timeline, starts);
        tally.started(phase);
        let (call, tally, timeline) = (client(Call::new(id)), tally.clone(), timeline.clone());
        calls.spawn(async move {
            let began = timeline.now();
            let ended = call.await;
            tally.ended(phase, ended, timeline.now().saturating_sub(began));
        });
        while calls.try_join_next().is_some() {}
    }
    while calls.join_next().await.is_some() {}
}

fn phase(kind: Kind, timeline: &Timeline, at: Duration) -> Phase {
    let outage = timeline.outage();
    if kind != Kind::Down || at < outage.start {
        Phase::Before
    } else if at < outage.end {
        Phase::During
    } else {
        Phase::After
    }
}
