//! A million calls through the shipped client, from 1 000 simulated processes over 1 000 simulated seconds.
//!
//! ```sh
//! cargo run --release -p steadfast-sim --example million
//! ```
//!
//! Prints how long it took on the wall, and a hash over what became of each call and when: the same each time.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Response, StatusCode};
use steadfast::policy::Time;
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, ResponseBody};
use steadfast::{Clock, ServiceClient};
use steadfast_sim::World;

const CLIENTS: u64 = 1_000;
const CALLS_EACH: u64 = 1_000;

/// An upstream that takes 1 to 20 ms, and fails one request in fifty.
struct Upstream(Clock, std::sync::Mutex<fastrand::Rng>);

impl Exchange for Upstream {
    fn exchange<'a>(&'a self, _outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        progress.hand_over();
        let (took, failed) = {
            let mut random = self.1.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (Duration::from_micros(random.u64(1_000..20_000)), random.u8(0..50) == 0)
        };
        Box::pin(async move {
            self.0.wait(took).await;
            let mut response = Response::new(ResponseBody::full(""));
            *response.status_mut() = if failed { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            Ok(response)
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let world = World::new(1);
    let clock = Clock::from(world.clock().clone());
    let ends = Rc::new(RefCell::new((DefaultHasher::new(), 0_u64, 0_u64)));
    for number in 0..CLIENTS {
        let mut random = world.random(&format!("arrivals of {number}"));
        let upstream = Upstream(clock.clone(), std::sync::Mutex::new(world.random(&format!("upstream of {number}"))));
        let builder = ServiceClient::builder("http://upstream").transport(upstream).clock(clock.clone());
        let client = builder.seed(random.u64(..)).build()?;
        let (clock, ends) = (clock.clone(), ends.clone());
        world.spawn(async move {
            for _ in 0..CALLS_EACH {
                clock.wait(Duration::from_micros(random.u64(0..2_000_000))).await;
                let result = client.get("/x").send().await;
                let (hash, calls, attempts) = &mut *ends.borrow_mut();
                let report = result.as_ref().map_or_else(steadfast::Error::report, steadfast::Response::report);
                (number, clock.now().as_nanos(), report.attempt_count(), report.ended().name()).hash(hash);
                *calls += 1;
                *attempts += u64::from(report.attempt_count());
            }
        });
    }
    world.run()?;
    let (hash, calls, attempts) = &*ends.borrow();
    let simulated = world.now().since(Time::ZERO).as_secs();
    let took = began.elapsed().as_secs_f64();
    println!(
        "{calls} calls, {attempts} attempts, {simulated} simulated seconds: {took:.2} s, hash {:016x}",
        hash.finish()
    );
    Ok(())
}
