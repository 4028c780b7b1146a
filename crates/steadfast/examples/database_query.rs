//! Queries to a database behind a guard: what may be repeated, what may not, and a pool of few connections.
//!
//! The database is a toy in memory that fails by a script with the codes of SQL (SQLSTATE), as PostgreSQL uses them. What
//! matters is [`class`]: it says what each code means, once, for every query of the service.
//!
//! `cargo run -p steadfast --example database_query`

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::testing::fake_clock;
use steadfast::{Clock, Context, ErrorClass, Guard, GuardError, Served};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// How a statement fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DbError {
    sqlstate: &'static str,
    /// Whether the commit had been sent: then nobody knows whether it was carried out.
    in_commit: bool,
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.in_commit { " in the commit" } else { "" };
        write!(f, "SQLSTATE {}{when}", self.sqlstate)
    }
}

impl Error for DbError {}

/// What an error says about the database, and whether the whole transaction may be run again.
fn class(error: &DbError) -> ErrorClass {
    match error.sqlstate {
        // The commit may have been carried out. Whether it was is a question, not something to try again.
        _ if error.in_commit => ErrorClass::Failure,
        // A serialisation failure or a deadlock: the database rolled back, and asks for another try. It is well, so this
        // must not open the breaker, however often it happens.
        "40001" | "40P01" => ErrorClass::Throttled { retry_after: None },
        // The connection broke or was refused, the server is going down or has no connection left.
        "08000" | "08003" | "08006" | "57P01" | "53300" => ErrorClass::TRANSIENT,
        // It took too long. Another run would, too, and the database is busy enough.
        "57014" => ErrorClass::Failure,
        // A constraint, a syntax error, a missing privilege: an answer, and there again at the next try.
        _ => ErrorClass::Permanent,
    }
}

/// A table of order numbers, and what happens to the next statements.
struct Database {
    clock: Clock,
    orders: Mutex<BTreeSet<u32>>,
    script: Mutex<VecDeque<DbError>>,
    connections: AtomicU32,
    most_connections: AtomicU32,
}

/// A connection that is in use until it is dropped.
struct Connection<'a>(&'a Database);

impl Database {
    fn new(clock: Clock) -> Self {
        Self {
            clock,
            orders: Mutex::default(),
            script: Mutex::default(),
            connections: AtomicU32::new(0),
            most_connections: AtomicU32::new(0),
        }
    }

    /// The next statement that writes fails like this.
    fn fail(&self, sqlstate: &'static str, in_commit: bool) {
        lock(&self.script).push_back(DbError { sqlstate, in_commit });
    }

    fn connect(&self) -> Connection<'_> {
        let in_use = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_connections.fetch_max(in_use, Ordering::Relaxed);
        Connection(self)
    }
}

impl Connection<'_> {
    /// `begin; insert into orders values ($1); commit`
    async fn insert_order(&self, number: u32) -> Result<(), DbError> {
        let failure = lock(&self.0.script).pop_front();
        match failure {
            // The answer to the commit is lost, the order is not.
            Some(error) if error.in_commit => {
                lock(&self.0.orders).insert(number);
                Err(error)
            }
            Some(error) => Err(error),
            None if lock(&self.0.orders).insert(number) => Ok(()),
            None => Err(DbError { sqlstate: "23505", in_commit: false }),
        }
    }

    /// `select count(*) from orders where number = $1`
    async fn count_orders(&self, number: u32) -> Result<usize, DbError> {
        Ok(usize::from(lock(&self.0.orders).contains(&number)))
    }

    /// A query that takes so long, and that the database gives up after `statement_timeout`.
    async fn report(&self, takes: Duration, statement_timeout: Duration) -> Result<&'static str, DbError> {
        self.0.clock.wait(takes.min(statement_timeout)).await;
        if takes > statement_timeout { Err(DbError { sqlstate: "57014", in_commit: false }) } else { Ok("the report") }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of the service that knows the database.
struct Orders {
    database: Database,
    guard: Guard,
}

impl Orders {
    /// Stores an order. The closure holds the whole transaction: what is repeated is all of it, on a connection of its own.
    async fn store(&self, number: u32) -> Result<Served<()>, GuardError<DbError>> {
        let transaction = |_| async move { self.database.connect().insert_order(number).await };
        self.guard.classify(class).serve(transaction).await
    }

    async fn is_stored(&self, number: u32) -> Result<bool, GuardError<DbError>> {
        let query = || async move { self.database.connect().count_orders(number).await };
        Ok(self.guard.classify(class).call(query).await? > 0)
    }

    /// A query that is told how long it may take. The guard would drop it at the deadline; the database would go on.
    async fn report(&self, takes: Duration) -> Result<&'static str, GuardError<DbError>> {
        let query = |context: Context| async move {
            let statement_timeout = context.time_left.saturating_sub(Duration::from_millis(100));
            self.database.connect().report(takes, statement_timeout).await
        };
        self.guard.classify(class).call_with(query).await
    }
}

/// The whole program.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let clock = fake_clock().seed(7);
    // Ten seconds for everything, as for every database; two connections, and nobody waits longer than 200 ms for one.
    let guard = Guard::database("orders-db").max_concurrent(2, Duration::from_millis(200)).build()?;
    let orders = Orders { database: Database::new(Clock::from(&clock)), guard };
    let database = &orders.database;

    database.fail("40P01", false);
    let stored = clock.run(orders.store(1))??;
    writeln!(out, "a deadlock: order 1 is stored at attempt {}", stored.report().attempt_count())?;

    if let Err(error) = clock.run(orders.store(1))? {
        writeln!(out, "a number that is taken: {error} after attempt {}", error.report().attempt_count())?;
    }

    database.fail("08006", false);
    let stored = clock.run(orders.store(2))??;
    writeln!(out, "a connection that broke: order 2 is stored at attempt {}", stored.report().attempt_count())?;

    database.fail("08006", true);
    if let Err(error) = clock.run(orders.store(3))? {
        writeln!(out, "one that broke too late: {error} after attempt {}", error.report().attempt_count())?;
        writeln!(out, "  so the database is asked: order 3 is stored, {}", clock.run(orders.is_stored(3))??)?;
    }

    // Three reports at once, of half a second each, over two connections. The third is refused while the others run: the
    // pool is no queue that everything piles up in.
    let half = Duration::from_millis(500);
    let three = async { tokio::join!(orders.report(half), orders.report(half), orders.report(half)) };
    let (first, second, third) = clock.run(three)?;
    for (number, report) in [(1, first), (2, second), (3, third)] {
        match report {
            Ok(report) => writeln!(out, "report {number}: {report}")?,
            Err(error) => writeln!(out, "report {number}: {error}")?,
        }
    }
    writeln!(out, "connections in use at most: {}", database.most_connections.load(Ordering::Relaxed))?;

    if let Err(error) = clock.run(orders.report(Duration::from_secs(60)))? {
        let seconds = error.report().duration().as_secs_f64();
        writeln!(out, "a report of a minute: {error} after {seconds:.1} s, not repeated")?;
    }
    writeln!(out, "the breaker is {}", orders.guard.snapshot().breaker.state.name())?;
    Ok(())
}
