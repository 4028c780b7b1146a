//! A model behind an API: limits per minute, a late first token, an answer that comes piece by piece, and a smaller model
//! for when the large one is overloaded.
//!
//! `cargo run -p steadfast --example ai_api`

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use steadfast::client::{BodyError, BuildError, StatusError};
use steadfast::config::Profile;
use steadfast::degraded::{self, Degraded};
use steadfast::policy::Time;
use steadfast::report::WaitReason;
use steadfast::testing::{FakeClock, Script, Step, fake_clock};
use steadfast::{RequestBuilder, ServiceClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock()).await
}

/// How asking a model fails.
#[derive(Debug)]
enum AskError {
    /// No answer came, or our own limits refused the call.
    Call(steadfast::Error),
    /// The last answer was an error.
    Status(StatusError),
    /// The answer cannot be read.
    Body(BodyError),
}

impl AskError {
    /// What the user is told is missing. `None` for a mistake of our own: a 400 is none of the model's failings, and the
    /// smaller model would answer the same.
    fn degraded(&self) -> Option<Degraded> {
        match self {
            Self::Call(error) => Some(Degraded::from(error)),
            Self::Status(error) if error.status().is_server_error() || error.status() == 429 => {
                Some(Degraded::from(error))
            }
            Self::Status(_) | Self::Body(_) => None,
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Status(error) => error.fmt(f),
            Self::Body(error) => error.fmt(f),
        }
    }
}

impl Error for AskError {}

#[derive(Deserialize)]
struct Completion {
    text: String,
}

/// The client of one model. Its transport is a script here; without `transport` it is the pool.
fn client_of(model: &str, upstream: &Script) -> Result<ServiceClient, BuildError> {
    ServiceClient::builder("https://models.example")
        .name(model)
        // Minutes for an answer, half a minute and more for its first byte, a `Retry-After` of up to a minute because limits
        // are per minute, and 529 ("overloaded"), which is in no RFC but what some of these APIs answer. A 429 does not open
        // the breaker: a model that paces us is well.
        .profile(Profile::Ai)
        // What is set here wins over the profile.
        .retries(2)
        .breaker_failures(3)
        .transport(upstream.clone())
        .build()
}

fn request(model: &ServiceClient, prompt: &str) -> RequestBuilder {
    let body = json!({ "model": model.name(), "prompt": prompt });
    // A POST, and one that may be repeated: an answer that is made twice costs a little, and harms nobody.
    model.post("/v1/completions").json(&body).retry(true)
}

/// The whole answer at once.
async fn ask(model: &ServiceClient, prompt: &str) -> Result<Completion, AskError> {
    let response = request(model, prompt).send().await.map_err(AskError::Call)?;
    response.error_for_status().map_err(AskError::Status)?.json().map_err(AskError::Body)
}

/// The large model's answer, or the small one's where the large one brings none: then the request being served is marked,
/// and its edge can tell the user.
async fn ask_either(large: &ServiceClient, small: &ServiceClient, prompt: &str) -> Result<Completion, AskError> {
    let error = match ask(large, prompt).await {
        Ok(completion) => return Ok(completion),
        Err(error) => error,
    };
    let Some(missing) = error.degraded() else { return Err(error) };
    let completion = ask(small, prompt).await?;
    degraded::note(missing);
    Ok(completion)
}

/// An answer as it comes. Up to the first byte everything is as above, retries included; after it nothing is repeated.
async fn stream(model: &ServiceClient, clock: &FakeClock, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let asked = clock.now();
    let response = request(model, "Count to three.").send_streaming().await?;
    let mut events = response.events();
    while let Some(event) = events.next().await {
        let token: Completion = serde_json::from_str(&event?.data)?;
        writeln!(out, "  {:4.1} s  {}", clock.now().since(asked).as_secs_f64(), token.text)?;
    }
    Ok(())
}

fn answer(text: &str) -> Step {
    Step::status(200).after(Duration::from_secs(4)).body(json!({ "text": text }).to_string())
}

/// Tokens as server-sent events: the head at once, the first token after 25 seconds.
fn tokens() -> Step {
    let event = |text| format!("data: {}\n\n", json!({ "text": text }));
    Step::status(200)
        .header("content-type", "text/event-stream")
        .piece(Duration::from_secs(25), event("one"))
        .piece(Duration::from_millis(300), event("two"))
        .piece(Duration::from_millis(300), event("three"))
}

/// The whole program.
pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // Waits and answers take time of this clock, and none of yours. A service leaves this line out, and nothing else.
    let clock = fake_clock().seed(7);
    let (large_api, small_api) = (Script::new(&clock, []), Script::new(&clock, [answer("Roughly: yes.")]));
    let large = client_of("large", &large_api)?;
    let small = client_of("small", &small_api)?;

    // 1. The quota of this minute is used up. The API says for how long, and that is what is waited, to the second.
    large_api.play([Step::status(429).header("retry-after", "7"), answer("Yes.")]);
    let response = request(&large, "Is it so?").send().await?;
    let wait = response.report().waits().iter().find(|wait| wait.reason == WaitReason::RetryAfter);
    let waited = wait.map_or(0, |wait| wait.duration.as_secs());
    writeln!(out, "429 with Retry-After: waited {waited} s, then {}", response.json::<Completion>()?.text)?;

    // 2. The first token takes 25 seconds. Over a connection, the usual `read_timeout` of 10 s would have cut it.
    large_api.play([tokens()]);
    writeln!(out, "a late first token:")?;
    stream(&large, &clock, out).await?;

    // 3. The large model is overloaded. Three attempts, then the small one answers, and the page can say so.
    large_api.play([Step::status(529)]);
    for _ in 0..2 {
        let before = large_api.requests();
        let (completion, missing) = degraded::collect(ask_either(&large, &small, "Is it so?")).await;
        let asked = large_api.requests() - before;
        let missing: Vec<String> = missing.iter().map(Degraded::to_string).collect();
        writeln!(out, "asked the large model {asked} times: {} Without: {}", completion?.text, missing.join(", "))?;
    }

    // 4. When its cool-down is over one call tries the large model again, and closes the circuit.
    large_api.play([answer("Yes.")]);
    clock.advance(Duration::from_secs(15));
    let (completion, missing) = degraded::collect(ask_either(&large, &small, "Is it so?")).await;
    writeln!(out, "later: {} Degraded: {}", completion?.text, !missing.is_empty())?;

    // 5. A mistake of ours is not made better by another model.
    large_api.play([Step::status(400)]);
    if let Err(error) = ask_either(&large, &small, "").await {
        writeln!(out, "no prompt: {error}")?;
    }
    writeln!(out, "all of it in {:.0} s of virtual time", clock.now().since(Time::ZERO).as_secs_f64())?;
    Ok(())
}
