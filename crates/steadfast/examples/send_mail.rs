//! Mail behind a guard: nothing is sent twice.
//!
//! A guard that is told nothing retries nothing, and for mail that is right: a line that goes dead after the text was handed
//! over leaves open whether it was taken. There are two exceptions, and both are proof. A relay that answers 4yz has *not*
//! accepted (RFC 5321, section 4.2.1), which is how greylisting works; and a provider that is given a key with each mail
//! can tell a repetition from a second mail.
//!
//! `cargo run -p steadfast --example send_mail`

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::config::Profile;
use steadfast::testing::fake_clock;
use steadfast::{Context, ErrorClass, Guard, GuardError, Served};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock()).await
}

/// How handing a mail over fails.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MailError {
    /// The relay said so, with this code; 4yz with a wait is what greylisting answers.
    Refused { code: u16, again_in: Option<Duration> },
    /// The text was handed over, and then the line went dead.
    Lost,
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, .. } => write!(f, "the relay answered {code}"),
            Self::Lost => f.write_str("the line went dead after the text was handed over"),
        }
    }
}

impl Error for MailError {}

/// What an answer of a relay means. The one thing that is tried again is a refusal that names the time to come back: the
/// relay is well, so it does not count against it either.
fn class(error: &MailError) -> ErrorClass {
    match error {
        MailError::Refused { code: 400..=499, again_in: Some(wait) } => {
            ErrorClass::Throttled { retry_after: Some(*wait) }
        }
        // 5yz: no such mailbox, too large, not welcome. The relay is well, and will say the same again.
        MailError::Refused { code: 500..=599, .. } => ErrorClass::Permanent,
        // Whatever else it is counts against the relay. The queue that the mail came from comes back to it.
        _ => ErrorClass::Failure,
    }
}

/// Takes mail, and fails by a script for each address.
#[derive(Default)]
struct Relay {
    script: Mutex<HashMap<&'static str, VecDeque<MailError>>>,
    /// Every copy that was taken: its address, and its `Message-ID`.
    taken: Mutex<Vec<(&'static str, String)>>,
}

impl Relay {
    fn fail(&self, to: &'static str, error: MailError) {
        lock(&self.script).entry(to).or_default().push_back(error);
    }

    fn greylist(&self, to: &'static str, seconds: u64) {
        self.fail(to, MailError::Refused { code: 451, again_in: Some(Duration::from_secs(seconds)) });
    }

    /// What SMTP does: a copy is a copy, whatever its `Message-ID`.
    async fn hand_over(&self, to: &'static str, message_id: String) -> Result<(), MailError> {
        let failure = lock(&self.script).get_mut(to).and_then(VecDeque::pop_front);
        if !matches!(failure, Some(MailError::Refused { .. })) {
            lock(&self.taken).push((to, message_id));
        }
        failure.map_or(Ok(()), Err)
    }

    /// What an API for mail does: it takes each key once, and answers a repetition as it answered the first.
    async fn accept_once(&self, to: &'static str, key: String) -> Result<(), MailError> {
        if lock(&self.taken).iter().any(|(_, known)| *known == key) {
            return Ok(());
        }
        self.hand_over(to, key).await
    }

    fn copies(&self) -> BTreeMap<&'static str, usize> {
        let mut copies = BTreeMap::new();
        for (to, _) in lock(&self.taken).iter() {
            *copies.entry(*to).or_default() += 1;
        }
        copies
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of the service that sends mail.
struct Mailer {
    relay: Relay,
    guard: Guard,
}

impl Mailer {
    /// By SMTP. The `Message-ID` is made of the call's key: the same at each attempt, so that a copy, should there be one,
    /// can be recognised by who gets it.
    async fn send(&self, to: &'static str) -> Result<Served<()>, GuardError<MailError>> {
        let send = |context: Context| {
            let message_id = format!("<{}@shop.example>", context.idempotency_key());
            self.relay.hand_over(to, message_id)
        };
        self.guard.classify(class).serve(send).await
    }

    /// By an API that honours a key. Now even a lost answer may be tried again.
    async fn send_with_key(&self, to: &'static str) -> Result<Served<()>, GuardError<MailError>> {
        let send = |context: Context| self.relay.accept_once(to, context.idempotency_key().to_string());
        self.guard.transient(|error| matches!(error, MailError::Lost)).serve(send).await
    }
}

/// What came of one mail, in a line.
fn told(sent: &Result<Served<()>, GuardError<MailError>>) -> String {
    match sent {
        Ok(served) => {
            let (attempts, seconds) = (served.report().attempt_count(), served.report().duration().as_secs());
            format!("taken at attempt {attempts}, after {seconds} s")
        }
        Err(error) => {
            let end = error.retry_after().map_or_else(
                || "not repeated".to_owned(),
                |wait| format!("to the queue, again in {} s", wait.as_secs()),
            );
            format!("{error}: attempt {}, {end}", error.report().attempt_count())
        }
    }
}

/// The whole program.
pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // The waits take no time here. A service leaves this line out, and nothing else.
    let _clock = fake_clock().seed(7);
    // A mail is sent from a queue, by a worker that has minutes. The profile knows how patient SMTP asks to be (RFC 5321,
    // section 4.5.3.2), how few connections relays allow, and that a wait of more than a minute is the queue's.
    let guard = Guard::job("mail-relay").profile(Profile::Mail).build()?;
    let mailer = Mailer { relay: Relay::default(), guard };
    let relay = &mailer.relay;

    writeln!(out, "anna: {}", told(&mailer.send("anna").await))?;

    relay.greylist("bert", 60);
    writeln!(out, "bert, greylisted: {}", told(&mailer.send("bert").await))?;

    // Longer than a worker should hold a mail: it goes back to the queue, with the time to come back.
    relay.greylist("cleo", 900);
    writeln!(out, "cleo, greylisted: {}", told(&mailer.send("cleo").await))?;

    relay.fail("dora", MailError::Refused { code: 550, again_in: None });
    writeln!(out, "dora, unknown: {}", told(&mailer.send("dora").await))?;

    relay.fail("emil", MailError::Lost);
    writeln!(out, "emil: {}", told(&mailer.send("emil").await))?;

    relay.fail("fay", MailError::Lost);
    writeln!(out, "fay, with a key: {}", told(&mailer.send_with_key("fay").await))?;

    writeln!(out, "copies taken: {:?}", relay.copies())?;
    Ok(())
}
