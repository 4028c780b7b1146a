//! Whether a simulation and reality agree.

use std::time::Duration;

use crate::play::Seen;

/// Requests and outcomes may differ by this share.
const SHARE: f64 = 0.1;
/// Of what is rare, so many calls in a hundred may differ: a tenth of three calls is none.
const RARE: f64 = 0.01;
/// How far apart a transition may be.
const APART: Duration = Duration::from_millis(500);

/// Everything in which they do not agree.
pub(crate) fn differences(name: &str, simulated: &Seen, real: &Seen) -> Vec<String> {
    let calls: u64 = real.ends.iter().map(|(_, count)| count).sum();
    let mut figures = vec![("requests", simulated.requests, real.requests)];
    figures.extend(simulated.ends.iter().zip(&real.ends).map(|((what, sim), (_, real))| (*what, *sim, *real)));
    let mut found = Vec::new();
    for (what, simulated, real) in figures {
        let allowed = (real as f64 * SHARE).max(calls as f64 * RARE);
        if simulated.abs_diff(real) as f64 > allowed {
            found.push(format!("{name}: {what}: simulated {simulated}, really {real}"));
        }
    }
    let states = |seen: &Seen| seen.transitions.iter().map(|(_, state)| *state).collect::<Vec<_>>();
    if states(simulated) == states(real) {
        for ((sim, state), (real, _)) in simulated.transitions.iter().zip(&real.transitions) {
            if sim.abs_diff(*real) > APART {
                found.push(format!("{name}: {state:?}: simulated at {sim:?}, really at {real:?}"));
            }
        }
    } else {
        found.push(format!("{name}: breaker: simulated {:?}, really {:?}", simulated.transitions, real.transitions));
    }
    found
}

#[test]
fn what_differs_is_found() {
    use steadfast::policy::breaker::State;
    let seen = |requests, ok, refused, transitions: &[(u64, State)]| Seen {
        requests,
        ends: std::array::from_fn(|place| match place {
            0 => ("ok", ok),
            4 => ("circuit_open", refused),
            _ => ("", 0),
        }),
        transitions: transitions.iter().map(|(at, state)| (Duration::from_millis(*at), *state)).collect(),
    };
    let real = seen(300, 200, 100, &[(1_000, State::Open)]);
    let none = |other: &Seen| differences("a", other, &real).is_empty();
    assert!(none(&seen(330, 200, 100, &[(1_500, State::Open)])));
    assert!(none(&seen(270, 181, 109, &[(500, State::Open)])));
    assert!(!none(&seen(331, 200, 100, &[(1_000, State::Open)])), "too many requests");
    assert!(!none(&seen(300, 220, 89, &[(1_000, State::Open)])), "an outcome");
    assert!(!none(&seen(300, 200, 100, &[(1_501, State::Open)])), "too late");
    assert!(!none(&seen(300, 200, 100, &[])), "it did not open");
    assert!(!none(&seen(300, 200, 100, &[(1_000, State::HalfOpen)])));
}
