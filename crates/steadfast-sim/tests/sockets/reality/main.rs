//! Simulation against reality: the same outage lived through by the real client over loopback sockets, in real time, and by
//! the same client in a simulation of it.
//!
//! A real server plays the model: so many workers, a queue, the times that its requests take, the triggers. What happens
//! there by chance is recorded: when each call was made, and how much work each request turned out to be, with all the
//! lateness of the machine's timers in it. The simulation is then given these arrivals and these service times, and has to
//! come to the same: requests sent and outcomes within 10 %, transitions of the breaker within half a second.
//!
//! On a loaded machine a run may say nothing: a client that does not get to run does not send. So the machine's lateness is
//! measured beside the runs, and where they disagree while it was too late, they are repeated; a machine that is always too
//! late fails, as nothing was shown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod compare;
mod http1;
mod lateness;
mod play;
mod server;

use cases::Case;
use lateness::Lateness;

/// How often the runs are repeated at the most.
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_simulations_agree_with_reality() {
    let mut cases = cases::all();
    for left in (0..TRIES).rev() {
        let lateness = Lateness::watch();
        let runs: Vec<_> = cases.into_iter().map(|case| tokio::spawn(both(case))).collect();
        let mut disagree = Vec::new();
        for run in runs {
            let (case, differences) = run.await.expect("a run does not panic");
            if !differences.is_empty() {
                disagree.push((case, differences));
            }
        }
        let late = lateness.most();
        let text: Vec<&str> = disagree.iter().flat_map(|(_, differences)| differences).map(String::as_str).collect();
        assert!(
            disagree.is_empty() || (left > 0 && lateness::is_too_much(late)),
            "{}\n(up to {late:?} late)",
            text.join("\n")
        );
        if disagree.is_empty() {
            return;
        }
        cases = disagree.into_iter().map(|(case, _)| case).collect();
    }
}

/// Lives through it really, then in a simulation of what was recorded, and says what differs.
async fn both(case: Case) -> (Case, Vec<String>) {
    let real = play::real(&case).await;
    let simulated = play::simulated(&case, &real);
    // Shown where the test fails, or is asked to show it.
    println!("{}\n  simulated {simulated:?}\n  real      {:?}", case.name, real.seen);
    let differences = compare::differences(case.name, &simulated, &real.seen);
    (case, differences)
}
