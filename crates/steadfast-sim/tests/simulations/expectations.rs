//! What is expected, and what is said where it does not come about.

use std::num::NonZero;

use steadfast_sim::outage::file::Measure;

use crate::{GOOD, read, run, with};

#[test]
fn what_comes_about_is_not_missed() {
    assert!(run(GOOD, 1).missed.is_empty());
}

#[test]
fn what_does_not_is_told_with_what_was_measured() {
    let outcome = run(&with("goodput = \"0.2..\"", "phase = \"during\"\ngoodput = \"0.99..\"\nopened = 0"), 1);
    let text: Vec<String> = outcome.missed.iter().map(ToString::to_string).collect();
    assert_eq!(text.len(), 2, "{text:?}");
    assert!(
        text[0].starts_with("line 23: configured: goodput in phase during: expected 0.99.., measured "),
        "{text:?}"
    );
    assert_eq!(text[1], "line 24: configured: opened in phase during: expected 0, measured 1");
}

/// Every seed is held to the bounds, and those that miss them are counted.
#[test]
fn every_seed_counts() {
    let file = read(&with("goodput = \"0.2..\"", "phase = \"before\"\nrequests = \"40..\""));
    let outcome = file.run(1, NonZero::new(8).unwrap(), NonZero::new(2).unwrap()).unwrap();
    let measured: Vec<f64> = outcome.runs[2].iter().map(|run| Measure::Requests.of(run, "before").unwrap()).collect();
    let few: Vec<u64> = (1..).zip(&measured).filter(|(_, requests)| **requests < 40.0).map(|(seed, _)| seed).collect();
    assert!(!few.is_empty() && few.len() < 8, "some of both: {measured:?}");
    assert_eq!(outcome.missed[0].seeds, few);
    let text = outcome.missed[0].to_string();
    assert!(text.ends_with(&format!("; missed with {} of 8 seeds", few.len())), "{text}");
}

/// What nobody did keeps to no bounds.
#[test]
fn a_figure_of_no_calls_is_missed() {
    let text = with("rate = 10", "arrivals = [\"1s\"]");
    for (expected, said) in [
        ("phase = \"after\"\ngoodput = \"0..\"", "measured none"),
        ("phase = \"during\"\np99 = \"..1h\"", "measured none"),
        ("phase = \"after\"\nwasted = \"..1\"", "measured none"),
    ] {
        let missed = run(&text.replace("goodput = \"0.2..\"", expected), 1).missed;
        assert_eq!(missed.len(), 1, "{expected}");
        assert!(missed[0].to_string().ends_with(said), "{}", missed[0]);
    }
    let nothing = text.replace("goodput = \"0.2..\"", "phase = \"after\"\nrequests = 0\nopened = 0");
    assert!(run(&nothing, 1).missed.is_empty(), "but nothing sent is nothing");
}

/// One that does not come back within the run never recovers, which no bound allows.
#[test]
fn never_is_later_than_any_bound() {
    let text = with("for = \"2s\"", "for = \"6s\"").replace("goodput = \"0.2..\"", "recovery = \"..24h\"");
    let missed = run(&text, 1).missed;
    assert_eq!(missed[0].to_string(), "line 22: configured: recovery: expected ..24h, measured never");
}

/// The same file and seeds give the same runs, whatever the threads.
#[test]
fn the_threads_change_nothing() {
    let file = read(GOOD);
    let with = |threads| file.run(7, NonZero::new(5).unwrap(), NonZero::new(threads).unwrap()).unwrap();
    let (one, four) = (with(1), with(4));
    assert_eq!(one.runs, four.runs);
    assert_eq!(one.seeds, [7, 8, 9, 10, 11]);
    assert_ne!(one.runs[0][0].calls, one.runs[0][1].calls, "another seed is another run");
}
