//! Everything that runs: five upstreams, each twice, and the two clients of each.

use std::io;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::blind::Blind;
use super::protected::Protected;
use super::scenario::{Kind, Timeline};
use super::tally::{Ended, Tally};
use super::traffic;
use super::upstream::{Bound, Upstream};
use crate::args::DemoArgs;

/// The run.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) timeline: Timeline,
    pub(crate) lanes: Vec<Lane>,
}

/// One kind of upstream with both its clients.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) kind: Kind,
    pub(crate) client: Protected,
    pub(crate) steadfast: Side,
    pub(crate) blind: Side,
}

/// An instance of an upstream, and what its client's calls came to.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) upstream: Upstream,
    pub(crate) tally: Arc<Tally>,
}

impl Stage {
    /// Binds and connects everything; the run's clock starts when all is there. The second value ends when all
    /// traffic has.
    pub(crate) async fn start(args: DemoArgs) -> io::Result<(Self, JoinSet<()>)> {
        let mut bound = Vec::new();
        for kind in Kind::ALL {
            bound.push((kind, Bound::new().await?, Bound::new().await?));
        }
        let timeline = Timeline::start(args.duration, args.rate, args.seed);
        let mut traffic = JoinSet::new();
        let mut lanes = Vec::new();
        for (kind, ours, theirs) in bound {
            let client = Protected::new(kind, ours.address()?, &timeline)?;
            let blind = Blind::new(theirs.address()?, kind.try_timeout());
            let lane = Lane {
                kind,
                client: client.clone(),
                steadfast: Side::new(ours, kind, &timeline),
                blind: Side::new(theirs, kind, &timeline),
            };
            traffic.spawn(traffic::run(kind, timeline.clone(), lane.steadfast.tally.clone(), move |call| {
                let client = client.clone();
                async move { client.call(call).await }
            }));
            traffic.spawn(traffic::run(kind, timeline.clone(), lane.blind.tally.clone(), move |call| async move {
                Ended { result: blind.call(call).await, not_repeated: false }
            }));
            lanes.push(lane);
        }
        Ok((Self { timeline, lanes }, traffic))
    }
}

impl Side {
    fn new(bound: Bound, kind: Kind, timeline: &Timeline) -> Self {
        Self { upstream: bound.serve(kind, timeline.clone()), tally: Arc::new(Tally::new()) }
    }
}
