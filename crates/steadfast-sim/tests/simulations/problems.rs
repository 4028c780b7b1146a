//! Every mistake has its line, what was expected, and the nearest name.

use steadfast_sim::outage::file::SimulationFile;

use crate::{GOOD, with};

fn problems(text: &str) -> String {
    match SimulationFile::parse("a.toml", text) {
        Ok(_) => format!("nothing, it is accepted:\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn each_is_told_with_its_place_and_its_cure() {
    let mut wrong = String::new();
    for (from, to, said) in [
        ("title = \"a\"\n", "", "a.toml:1:1: title: missing: a string that is not empty"),
        (
            "title = \"a\"",
            "title = \" \"",
            "a.toml:1:9: title: expected a string that is not empty; found the string \" \"",
        ),
        ("length = \"10s\"", "lenght = \"10s\"", "a.toml:2:1: lenght: unknown key; did you mean `length`?"),
        (
            "length = \"10s\"",
            "length = 10",
            "a.toml:2:10: length: expected a duration above 0s of at most 24h, such as \"250ms\"; found the integer 10",
        ),
        ("length = \"10s\"", "length = \"0s\"", "a.toml:2:10: length: expected a duration above 0s"),
        ("[upstreams.a]", "[upstreams.b]", "a.toml:4:12: upstreams.b: no model of this name"),
        ("base_url = \"http://a.test\"", "base_url = \"nowhere\"", "a.toml:5:12: upstreams.a.base_url: "),
        ("base_url", "retrys = 1\nbase_url", "a.toml:5:1: upstreams.a.retrys: unknown key; did you mean `retries`?"),
        ("[model.a]", "[modell.a]", "a.toml:7:2: modell: unknown key; did you mean `model`?"),
        ("[model.a]", "[model.a]\nwokers = 2", "a.toml:8:1: model.a.wokers: unknown key; did you mean `workers`?"),
        (
            "[model.a]",
            "[model.a]\nworkers = 0",
            "a.toml:8:11: model.a.workers: expected an integer from 1 to 1000000; found the integer 0",
        ),
        (
            "[model.a]",
            "[model.a]\ndiscipline = \"fifi\"",
            "a.toml:8:14: model.a.discipline: expected one of \"fifo\", \"lifo\"; found the string \"fifi\"; did you mean `fifo`?",
        ),
        (
            "fixed = \"1ms\"",
            "",
            "a.toml:8:16: model.a.service_time: expected one of mean, fixed, median, drawn, replayed",
        ),
        (
            "fixed = \"1ms\"",
            "fixed = \"1ms\", mean = \"1ms\"",
            "a.toml:8:33: model.a.service_time.mean: either this or `fixed`",
        ),
        ("fixed = \"1ms\"", "median = \"1ms\"", "a.toml:8:16: model.a.service_time.p99: missing beside `median`"),
        (
            "fixed = \"1ms\"",
            "median = \"2ms\", p99 = \"1ms\"",
            "a.toml:8:34: model.a.service_time.p99: expected it not to be below `median`",
        ),
        ("fixed = \"1ms\"", "drawn = [\"1ms\", 2]", "a.toml:8:34: model.a.service_time.drawn[1]: expected a duration"),
        ("fixed = \"1ms\"", "replayed = []", "a.toml:8:18: model.a.service_time.replayed: expected at least one"),
        ("rate = 10", "", "a.toml:10:1: workload: expected one of rate, callers, arrivals"),
        ("rate = 10", "rate = 10\ncallers = 1", "a.toml:12:1: workload.callers: either this or `rate`"),
        ("rate = 10", "rate = 10\nthink = \"1s\"", "a.toml:12:1: workload.think: only with `callers`"),
        ("rate = 10", "callers = 2", "a.toml:10:1: workload.think: missing beside `callers`"),
        ("rate = 10", "arrivals = [\"2s\", \"1s\"]", "a.toml:11:1: workload.arrivals: expected instants in order"),
        (
            "rate = 10",
            "rate = 10000000",
            "a.toml:11:1: workload.rate: expected at most 20000000 calls in all; this may come to 100000000",
        ),
        (
            "\"down\"",
            "\"load\"\nfactor = 1000000",
            "a.toml:11:1: workload.rate: expected at most 20000000 calls in all; this may come to 20000080",
        ),
        (
            "rate = 10",
            "clients = 20000\ncallers = 6\nthink = \"1s\"",
            "a.toml:12:1: workload.callers: expected at most 100000 in all: clients times callers",
        ),
        (
            "rate = 10",
            "callers = 9000\nthink = \"1us\"",
            "a.toml:12:1: workload.think: expected at most 20000000 calls",
        ),
        (
            "\"down\"",
            "\"down\"\nevery = \"1us\"\neach = \"1us\"",
            "a.toml:15:1: trigger[0].every: expected it to come at most 100000 times within `for`",
        ),
        ("rate = 10", "rate = 10\ncalls = \"b\"", "a.toml:12:1: workload.calls: no model of this name: there is a"),
        ("\"down\"", "\"dwon\"", "a.toml:14:10: trigger[0].effect: expected one of"),
        ("\"down\"", "\"slow\"", "a.toml:13:1: trigger[0].speed: missing: this effect is nothing without it"),
        ("\"down\"", "\"down\"\nspeed = 1", "a.toml:15:1: trigger[0].speed: a key of slow, not of down"),
        (
            "\"down\"",
            "\"reset\"\nshare_of_calls = 0.1",
            "a.toml:15:1: trigger[0].share_of_calls: reset does not fall on single requests",
        ),
        ("\"down\"", "\"down\"\nevery = \"1s\"", "a.toml:15:1: trigger[0].every: only with `each`"),
        (
            "\"down\"",
            "\"down\"\nevery = \"1s\"\neach = \"2s\"",
            "a.toml:16:1: trigger[0].each: expected at most `every`",
        ),
        (
            "\"down\"",
            "\"down\"\nreplica = 1",
            "a.toml:15:1: trigger[0].replica: expected a replica of the model, 0 to 0",
        ),
        ("\"down\"", "\"load\"\nfactor = 2\nreplica = 0", "a.toml:16:1: trigger[0].replica: load falls on no upstream"),
        ("for = \"2s\"", "", "a.toml:13:1: trigger[0].for: missing: a duration"),
        (
            "[policies.quick.",
            "[policies.blind.",
            "a.toml:18:11: policies.blind: `blind` is there already: a candidate has another name",
        ),
        (
            "[policies.quick.upstreams.a]",
            "[policies.quick.upstreams.b]",
            "a.toml:18:27: policies.quick.upstreams.b: no model of this name: there is a",
        ),
        ("retries = 1", "retries = -1", "a.toml:19:11: policies.quick.upstreams.a.retries: expected an integer"),
        (
            "retries = 1",
            "retrys = 1",
            "a.toml:19:1: policies.quick.upstreams.a.retrys: unknown key; did you mean `retries`?",
        ),
        (
            "title = \"a\"",
            "title = \"a\"\ncompare = [\"quik\"]",
            "a.toml:2:12: compare[0]: no policy of this name; did you mean `quick`?",
        ),
        (
            "title = \"a\"",
            "title = \"a\"\ncompare = [\"none\"]",
            "a.toml:22:1: expect[0].policy: no policy of this name is run: there is none",
        ),
        (
            "goodput",
            "policy = \"quik\"\ngoodput",
            "a.toml:22:1: expect[0].policy: no policy of this name is run; did you mean `quick`?",
        ),
        (
            "goodput",
            "phase = \"durng\"\ngoodput",
            "a.toml:22:1: expect[0].phase: no phase of this name; did you mean `during`?",
        ),
        ("goodput = \"0.2..\"", "goodput = \"0.2..0.1\"", "a.toml:22:11: expect[0].goodput: expected a range such as"),
        ("goodput = \"0.2..\"", "", "a.toml:21:1: expect[0]: expected a figure with its bounds"),
        (
            "goodput",
            "upstream = \"a\"\ngoodput",
            "a.toml:23:1: expect[0].goodput: a figure of the calls, not of an `upstream`",
        ),
        (
            "goodput = \"0.2..\"",
            "phase = \"during\"\nrecovery = \"..1s\"",
            "a.toml:23:1: expect[0].recovery: without `phase`",
        ),
        ("goodput", "in_time", "a.toml:22:1: expect[0].in_time: the file says no `in_time`"),
        (
            "[[expect]]",
            "[[phase]]\nname = \"during\"\nfrom = \"1s\"\nto = \"2s\"\n[[expect]]",
            "a.toml:22:1: phase[0].name: a phase of this name is there already",
        ),
        ("title = \"a\"", "title = \"a\"\ntable = \"x\"", "a.toml:2:1: table: only with `config`"),
        ("title = \"a\"", "title = \"a\"\nconfig = \"nowhere.toml\"", "nowhere.toml: cannot be read"),
        ("title = \"a\"", "title = a", "a.toml:1:9: TOML syntax"),
    ] {
        let told = problems(&with(from, to));
        if !told.lines().any(|line| line.starts_with(said)) {
            wrong.push_str(&format!("expected {said}\ntold     {told}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn all_are_told_at_once_in_the_order_of_the_file() {
    let text = with("length = \"10s\"", "length = 1").replace("rate = 10", "rate = \"10\"").replace("0.2..", "a");
    let told = problems(&text);
    let places: Vec<&str> = told.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places, ["a.toml:2:10", "a.toml:11:8", "a.toml:22:11"], "{told}");
}

#[test]
fn chains_have_a_beginning_and_an_end() {
    let model = |name: &str, calls: &str| format!("[model.{name}]\nservice_time = {{ fixed = \"1ms\" }}\n{calls}\n");
    let chain = |models: &[(&str, &str)]| {
        let models: String = models.iter().map(|(name, calls)| model(name, calls)).collect();
        format!("title = \"a\"\nlength = \"1s\"\nworkload = {{ rate = 1 }}\n{models}")
    };
    for (models, said) in [
        (&[("a", ""), ("b", "")][..], "workload.calls: missing: the clients can call more than one of the models"),
        (&[("a", "calls = \"c\""), ("b", "")], "model.a.calls: no model of this name: there is a, b"),
        (&[("a", "calls = \"b\""), ("b", "calls = \"b\"")], "model.b.calls: a model that has been called already"),
    ] {
        let told = problems(&chain(models));
        assert!(told.contains(said), "{said}\n---\n{told}");
    }
    let unused = chain(&[("a", ""), ("b", "")]).replace("rate = 1", "rate = 1, calls = \"a\"");
    assert!(problems(&unused).contains("model.b: a model that nobody calls"), "{}", problems(&unused));
    let file = crate::read(&chain(&[("b", ""), ("a", "calls = \"b\"")]));
    assert_eq!(file.models, ["a", "b"], "by who calls whom, not by where they stand");
}

#[test]
fn no_mistake_panics() {
    for end in 0..GOOD.len() {
        let _ = SimulationFile::parse("a.toml", &GOOD[..end]);
    }
    for word in ["model", "upstreams", "policies", "trigger", "workload", "expect", "phase", "compare", "config"] {
        for value in ["1", "\"x\"", "[]", "{}", "[{}]", "[1]", "{ x = 1 }", "[[]]", "{ x = { y = { z = 1 } } }"] {
            let _ = SimulationFile::parse("a.toml", &format!("{word} = {value}\ntitle = \"a\"\nlength = \"1s\"\n"));
        }
    }
}

/// What a file may come to is bounded: phases, intervals of all policies, visits of all triggers.
#[test]
fn a_slip_of_the_pen_does_not_take_the_machine() {
    let phases: String =
        (0..101).map(|number| format!("[[phase]]\nname = \"p{number}\"\nfrom = \"0s\"\nto = \"1s\"\n")).collect();
    let said = problems(&format!("{GOOD}\n{phases}"));
    assert!(said.contains("expected at most 100 phases; found 101"), "{said}");
    let said = problems(&with("length = \"10s\"", "length = \"1000s\"\ninterval = \"1ms\""));
    assert!(said.contains("models and policies come to"), "{said}");
    let many = "[model.a]\nreplicas = 10000";
    let often = "\n[[trigger]]\neffect = \"down\"\nat = \"1s\"\nfor = \"9s\"\nevery = \"1ms\"\neach = \"1ms\"\n";
    let said = problems(&format!("{}{often}", with("[model.a]", many)));
    assert!(said.contains("that all triggers befall come to 90010000"), "{said}");
}
