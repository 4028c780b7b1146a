//! The sections of the retry budget.
//!
//! "After" is goodput 30 to 70 s after the trouble, in percent of what the same clients get without retries and breaker;
//! cells where these get less than 20 % themselves show nothing and are left out (.95 after a slow spell, a freeze, a
//! spike).

use crate::check::{Bound, Check, Measure};
use crate::figures::{Figure, Trial};
use crate::list::{List, describe};
use crate::rules::Rule;
use crate::scenario::{Case, Failing, Scenario};

use Bound::{AtLeast, AtMost};
use Failing::{Answers503, Hangs};

/// Numbers of clients.
pub(crate) const FLEETS: [usize; 4] = [1, 10, 100, 1_000];
const BUSY: [usize; 3] = [1, 10, 100];
const LOADS: [u32; 4] = [50, 70, 85, 95];

/// Everything whose aftermath is looked at, and the loads at which it is.
pub(crate) const OUTAGES: [(Scenario, &[u32]); 7] = [
    (Scenario::Slow, &[50, 70, 85]),
    (Scenario::Freeze, &[50, 70, 85]),
    (Scenario::Spike, &[50, 70, 85]),
    (Scenario::Brownout, &LOADS),
    (Scenario::BadReplica(Answers503), &LOADS),
    (Scenario::BadReplica(Hangs), &LOADS),
    (Scenario::Costly, &LOADS),
];

/// A figure of clients with this rule, against that of clients without retries and breaker.
pub(crate) fn of_none(figure: Figure, case: Case, rule: Rule) -> Measure {
    Measure::PercentOf(figure, Trial { case, rule }, Trial { case, rule: Rule::None })
}

/// All sections.
pub fn checks() -> Vec<Check> {
    let mut list = List::default();
    busy_clients(&mut list);
    quiet_clients(&mut list);
    during(&mut list);
    noise(&mut list);
    sent(&mut list);
    episodes(&mut list);
    seldom(&mut list);
    harness(&mut list);
    list.0
}

fn busy_clients(list: &mut List) {
    for (scenario, loads) in OUTAGES {
        for &load in loads {
            for clients in BUSY {
                let least = match scenario {
                    _ if load == 95 => 95.0,
                    Scenario::Slow => 95.0,
                    Scenario::Freeze => 92.0,
                    _ => 98.0,
                };
                let case = Case::new(scenario, load, clients);
                let quick = matches!((scenario, load, clients), (Scenario::Slow, 85, 1) | (Scenario::Freeze, 85, 100));
                let check =
                    list.add("budget.A", describe(case), of_none(Figure::After, case, Rule::Budget), AtLeast(least));
                (check.single, check.quick) = (Some(AtLeast(75.0)), quick);
                check.known = known_after(scenario);
            }
        }
    }
}

/// The worst cell and the mean of all that the study had.
fn known_after(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Slow => "98-100",
        Scenario::Freeze => "95-99",
        _ => "100",
    }
}

fn quiet_clients(list: &mut List) {
    for (scenario, loads) in OUTAGES {
        for &load in loads {
            let case = Case::new(scenario, load, 1_000);
            let (least, known) = match (scenario, load) {
                (Scenario::Slow, 85) => (75.0, "81"),
                (Scenario::Freeze, 85) => (50.0, "56"),
                (Scenario::Brownout, 95) => (60.0, "70"),
                _ => (95.0, "97-100"),
            };
            let measure = of_none(Figure::After, case, Rule::Budget);
            let check = list.add("budget.B", describe(case), measure, AtLeast(least));
            (check.known, check.quick) = (known, (scenario, load) == (Scenario::Slow, 85));
        }
    }
    for (scenario, loads) in OUTAGES {
        for (&load, clients) in loads.iter().flat_map(|load| FLEETS.map(|clients| (load, clients))) {
            let case = Case { skips_dead_work: true, ..Case::new(scenario, load, clients) };
            let measure = of_none(Figure::After, case, Rule::Budget);
            list.add("budget.B", describe(case), measure, AtLeast(99.0)).known = "100";
        }
    }
}

fn during(list: &mut List) {
    let cells = [
        (Scenario::Costly, 95, 100.0, "106-117"),
        (Scenario::BadReplica(Answers503), 95, 90.0, "93 at worst"),
        (Scenario::BadReplica(Answers503), 85, 110.0, "112-118"),
    ];
    for (scenario, load, least, known) in cells {
        for clients in BUSY {
            let case = Case::new(scenario, load, clients);
            let measure = of_none(Figure::During, case, Rule::Budget);
            list.add("budget.C", describe(case), measure, AtLeast(least)).known = known;
        }
    }
}

fn noise(list: &mut List) {
    let scenario = |percent, failing| Scenario::Noise { percent, failing, seconds: 60 };
    for clients in FLEETS {
        for load in LOADS {
            for (failing, least) in [(Answers503, 99.9), (Hangs, 99.5)] {
                let case = Case::new(scenario(5, failing), load, clients);
                let measure = Measure::Of(Figure::During, Trial { case, rule: Rule::Budget });
                list.add("budget.D", describe(case), measure, AtLeast(least)).known = "99.9; hangs 99.6";
            }
        }
    }
    let thresholds = [
        (95.5, 99.0, "96.2", "99.2"),
        (96.0, 99.0, "97.0", "99.2"),
        (98.0, 98.3, "98.7", "98.6-99.0"),
        (97.5, 97.5, "98.2", "98.2"),
    ];
    for (clients, (fifth, half, known_fifth, known_half)) in FLEETS.into_iter().zip(thresholds) {
        for load in LOADS {
            let case = Case::new(scenario(20, Answers503), load, clients);
            for (rule, least, known) in [(Rule::Budget, fifth, known_fifth), (Rule::BudgetHalf, half, known_half)] {
                let measure = Measure::Of(Figure::During, Trial { case, rule });
                let check = list.add("budget.D", describe(case), measure, AtLeast(least));
                check.known = known;
                check.quick = rule == Rule::Budget && load == 70 && (clients == 1 || clients == 100);
            }
        }
    }
}

fn sent(list: &mut List) {
    let answered = [(1.02, "1.01"), (1.02, "1.01"), (1.03, "1.02"), (1.15, "1.09-1.13")];
    let hung = [(1.01, "1.00-1.01"), (1.01, "1.00-1.01"), (1.02, "1.00-1.01"), (1.08, "1.05-1.07")];
    for (failing, thresholds) in [(Answers503, answered), (Hangs, hung)] {
        for (clients, (most, known)) in FLEETS.into_iter().zip(thresholds) {
            for load in LOADS {
                let case = Case::new(Scenario::Down(failing), load, clients);
                let measure = Measure::Of(Figure::SentPerCall, Trial { case, rule: Rule::Budget });
                let check = list.add("budget.E", describe(case), measure, AtMost(most));
                (check.known, check.quick) = (known, (failing, clients, load) == (Answers503, 1_000, 70));
            }
        }
    }
    for clients in BUSY {
        for load in LOADS {
            let case = Case::new(Scenario::Down(Answers503), load, clients);
            let measure = Measure::Of(Figure::SentPerCall, Trial { case, rule: Rule::Shipped });
            list.add("budget.E", describe(case), measure, AtMost(0.07)).known = "0.00-0.04";
        }
    }
}

fn episodes(list: &mut List) {
    for clients in FLEETS {
        let case = Case::new(Scenario::AfterNoise, 70, clients);
        let measure = Measure::Of(Figure::NextTen, Trial { case, rule: Rule::Budget });
        list.add("budget.F", describe(case), measure, AtLeast(99.7)).known = "99.8-99.9";
    }
    for clients in FLEETS {
        let (least, known) = if clients == 1_000 { (98.0, "98.2") } else { (99.9, "99.95") };
        let case = Case::new(Scenario::AfterDown, 70, clients);
        let measure = Measure::Of(Figure::FiveToFifteen, Trial { case, rule: Rule::Budget });
        list.add("budget.F", describe(case), measure, AtLeast(least)).known = known;
    }
}

fn seldom(list: &mut List) {
    for (percent, failing, least, known) in
        [(5, Answers503, 99.9, "100"), (20, Answers503, 97.5, "98.1"), (5, Hangs, 99.5, "99.7")]
    {
        let case = Case::new(Scenario::Week { percent, failing }, 0, 1);
        let measure = Measure::Of(Figure::During, Trial { case, rule: Rule::Budget });
        list.add("budget.G", describe(case), measure, AtLeast(least)).known = known;
    }
    for (per_minute, most) in [(6_000, 17.0), (60, 13.0), (1, 13.0)] {
        for fresh in [true, false] {
            let case = Case::new(Scenario::TwoHours { per_minute, fresh }, 0, 1);
            let measure = Measure::Of(Figure::Retries, Trial { case, rule: Rule::Budget });
            list.add("budget.G", describe(case), measure, AtMost(most));
        }
    }
}

/// The ceiling alone has to fail where the gate does not, else the harness is too kind.
fn harness(list: &mut List) {
    let case = Case::new(Scenario::Slow, 85, 1);
    let measure = of_none(Figure::After, case, Rule::CeilingAlone);
    let check = list.add("budget.H", describe(case), measure, Bound::Below(0.5));
    (check.known, check.quick) = ("0", true);
}
