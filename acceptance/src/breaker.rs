//! The sections of the circuit breaker.
//!
//! All at .7 of the capacity but for the outages of the budget (G), with the retry budget as shipped. "Off" is the same
//! without a breaker.

use crate::budget::{FLEETS, OUTAGES, of_none};
use crate::check::{Bound, Check, Measure};
use crate::figures::{Figure, Trial};
use crate::list::{List, describe};
use crate::rules::Rule;
use crate::scenario::{Case, Failing, Scenario};

use Bound::{AtLeast, AtMost, Below, Within};
use Failing::{Answers503, Hangs};

const LOAD: u32 = 70;

fn shipped(figure: Figure, case: Case) -> Measure {
    Measure::Of(figure, Trial { case, rule: Rule::Shipped })
}

fn less_off(case: Case) -> Measure {
    let trial = |rule| Trial { case, rule };
    Measure::Less(Figure::During, trial(Rule::Shipped), trial(Rule::Budget))
}

fn less_plain(figure: Figure, case: Case) -> Measure {
    let trial = |rule| Trial { case, rule };
    Measure::Less(figure, trial(Rule::Shipped), trial(Rule::PlainStreak))
}

const fn noise(percent: u8) -> Scenario {
    Scenario::Noise { percent, failing: Answers503, seconds: 300 }
}

/// All sections.
pub fn checks() -> Vec<Check> {
    let mut list = List::default();
    independent_failures(&mut list);
    one_replica(&mut list);
    dead(&mut list);
    few_calls(&mut list);
    moments(&mut list);
    outages(&mut list);
    harness(&mut list);
    for clients in FLEETS {
        let case = Case::new(Scenario::Poison, LOAD, clients);
        list.add("breaker.I", describe(case), less_off(case), Within(1.0)).known = "0.0 to -0.4";
    }
    list.0
}

fn independent_failures(list: &mut List) {
    for (clients, (least, known)) in FLEETS.into_iter().zip([(-0.3, "0"), (-0.3, "0"), (-0.8, "-0.1"), (-1.0, "-0.4")])
    {
        let case = Case::new(noise(20), LOAD, clients);
        let check = list.add("breaker.A", describe(case), less_off(case), AtLeast(least));
        (check.known, check.quick) = (known, clients == 1);
    }
    for (clients, (least, known)) in FLEETS.into_iter().zip([(-0.5, "0"), (-0.5, "0"), (-3.0, "-1")]) {
        let case = Case::new(noise(35), LOAD, clients);
        list.add("breaker.A", describe(case), less_off(case), AtLeast(least)).known = known;
    }
    let case = Case::new(noise(35), LOAD, 1_000);
    list.add("breaker.A", describe(case), shipped(Figure::During, case), AtLeast(70.0)).known = "72";
    for clients in FLEETS {
        let case = Case::new(noise(5), LOAD, clients);
        list.add("breaker.A", describe(case), shipped(Figure::During, case), AtLeast(99.9)).known = "100";
    }
}

fn one_replica(list: &mut List) {
    let of_three = |failing| Scenario::OneOf { replicas: 3, failing };
    let of_ten = |failing| Scenario::OneOf { replicas: 10, failing };
    for (failing, thresholds, quietest, known) in
        [(Answers503, [-0.5, -0.5, -3.0], 74.0, "76"), (Hangs, [-1.0, -1.0, -2.5], 64.0, "65")]
    {
        for (clients, least) in FLEETS.into_iter().zip(thresholds) {
            let case = Case::new(of_three(failing), LOAD, clients);
            let check = list.add("breaker.B", describe(case), less_off(case), AtLeast(least));
            check.quick = failing == Answers503 && clients == 10;
            check.known = if clients == 100 && failing == Answers503 { "0" } else { "" };
        }
        let case = Case::new(of_three(failing), LOAD, 1_000);
        list.add("breaker.B", describe(case), shipped(Figure::During, case), AtLeast(quietest)).known = known;
    }
    for clients in FLEETS {
        let case = Case::new(of_ten(Answers503), LOAD, clients);
        list.add("breaker.B", describe(case), shipped(Figure::During, case), AtLeast(99.5)).known = "99.9";
        let case = Case::new(of_ten(Hangs), LOAD, clients);
        list.add("breaker.B", describe(case), less_off(case), AtLeast(-0.3)).known = "0";
    }
}

fn dead(list: &mut List) {
    let rows = [
        (
            Answers503,
            0,
            [0.2, 0.2, 0.5, 5.0],
            Some([220.0, 30.0, 13.0, 13.0]),
            ["0.15; 174", "0.15; 20", "0.37; 7", "4.3; 7"],
        ),
        (
            Hangs,
            0,
            [0.55, 0.75, 1.3, 7.0],
            Some([420.0, 70.0, 17.0, 13.0]),
            ["0.51; 359", "0.65; 53", "1.15; 11", "6.2; 7"],
        ),
        (Answers503, 20, [0.35, 0.35, 1.1, 6.5], None, ["0.20", "0.17", "0.84", "5.5"]),
    ];
    for (failing, noise, opens, sent, known) in rows {
        for (index, (clients, most)) in FLEETS.into_iter().zip(opens).enumerate() {
            let case = Case::new(Scenario::Dead { failing, noise }, LOAD, clients);
            let known = known.get(index).copied().unwrap_or_default();
            let check = list.add("breaker.C", describe(case), shipped(Figure::Opens, case), AtMost(most));
            (check.known, check.quick) = (known, (failing, noise, clients) == (Answers503, 0, 1));
            if let Some(most) = sent.and_then(|sent| sent.get(index).copied()) {
                let check = list.add("breaker.C", describe(case), shipped(Figure::SentEach, case), AtMost(most));
                (check.known, check.quick) = (known, (failing, clients) == (Answers503, 1));
            }
        }
    }
    for (clients, (most, known)) in FLEETS.into_iter().zip([(0.3, "0.16"), (0.6, "0.32"), (1.8, "1.1"), (8.0, "7.2")]) {
        let case = Case::new(Scenario::NinetyPercent, LOAD, clients);
        list.add("breaker.D", describe(case), shipped(Figure::Opens, case), AtMost(most)).known = known;
    }
}

fn few_calls(list: &mut List) {
    for noise in [5, 20] {
        let case = Case::new(Scenario::Quiet { per_minute: 1, noise }, 0, 600);
        list.add("breaker.E", describe(case), less_plain(Figure::SentEach, case), Within(0.0)).known = "0";
        list.add("breaker.E", describe(case), less_plain(Figure::Opens, case), Within(0.0)).known = "0";
    }
    for (noise, most, known) in [(5, 5.0, "2.3"), (20, 7.0, "4.0")] {
        let case = Case::new(Scenario::Quiet { per_minute: 60, noise }, 0, 200);
        list.add("breaker.E", describe(case), shipped(Figure::Opens, case), AtMost(most)).known = known;
    }
}

fn moments(list: &mut List) {
    for clients in FLEETS {
        let case = Case::new(Scenario::Blip, LOAD, clients);
        list.add("breaker.F", describe(case), shipped(Figure::During, case), AtLeast(99.5)).known = "100";
    }
    for (clients, (least, known)) in FLEETS.into_iter().zip([(99.5, "100"), (99.5, "100"), (97.0, "98"), (97.0, "98")])
    {
        let case = Case::new(Scenario::Reset, LOAD, clients);
        let check = list.add("breaker.F", describe(case), shipped(Figure::During, case), AtLeast(least));
        (check.known, check.quick) = (known, clients == 1);
    }
    // Clients that fill their slots well before the timeout.
    for (slots, clients) in [(50, 1), (50, 10), (10, 1), (10, 10)] {
        let case = Case::new(Scenario::Slots(slots), LOAD, clients);
        list.add("breaker.F", describe(case), shipped(Figure::Opens, case), AtMost(10.3)).known = "10";
    }
}

fn outages(list: &mut List) {
    let down: [(Scenario, &[u32]); 2] =
        [(Scenario::Down(Answers503), &[50, 70, 85, 95]), (Scenario::Down(Hangs), &[50, 70, 85, 95])];
    for (scenario, loads) in OUTAGES.into_iter().chain(down) {
        for &load in loads {
            for clients in FLEETS {
                let case = Case::new(scenario, load, clients);
                let measure = of_none(Figure::After, case, Rule::Shipped);
                list.add("breaker.G", describe(case), measure, AtLeast(98.0)).known = "100";
            }
        }
    }
    for (clients, known) in FLEETS.into_iter().zip(["0.1", "0.1", "0", "0"]) {
        let case = Case::new(Scenario::Dead { failing: Answers503, noise: 0 }, LOAD, clients);
        list.add("breaker.G", describe(case), less_plain(Figure::Closes, case), Within(1.0)).known = known;
    }
}

/// A plain count of failures has to fail where the shipped rule does not, else the harness is too kind.
fn harness(list: &mut List) {
    for (scenario, limit, known) in [(noise(20), 35.0, "16"), (Scenario::Reset, 40.0, "24")] {
        let case = Case::new(scenario, LOAD, 1);
        let measure = Measure::Of(Figure::During, Trial { case, rule: Rule::PlainStreak });
        let check = list.add("breaker.H", describe(case), measure, Below(limit));
        (check.known, check.quick) = (known, true);
    }
}
