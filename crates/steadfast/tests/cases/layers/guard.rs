//! A guard around services that are not HTTP's.

use super::*;

/// 11.1, 11.2
#[test]
fn c11_2_a_guard_as_a_layer() {
    let clock = VirtualClock::new();
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    // Fails twice, then echoes: a request that is no HTTP and can be cloned.
    let service = service_fn(move |request: Vec<u8>| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(if number % 3 < 2 { Err(io::Error::from(io::ErrorKind::Interrupted)) } else { Ok(request) })
    });
    let guard = Guard::builder("mail").clock(clock.clone()).seed(7).build().unwrap();
    let layer =
        GuardLayer::new(guard.clone()).transient(|error: &io::Error| error.kind() == io::ErrorKind::Interrupted);
    let guarded = layer.layer(service.clone());
    let echoed = clock.run(guarded.oneshot(vec![1, 2, 3])).unwrap();
    assert_eq!((echoed.unwrap(), calls.load(Ordering::SeqCst)), (vec![1, 2, 3], 3));
    let careful = GuardLayer::new(guard.clone()).layer(service);
    match clock.run(careful.oneshot(vec![4])).unwrap() {
        Err(GuardError::Operation { error, report, .. }) => {
            assert_eq!((error.kind(), report.attempt_count()), (io::ErrorKind::Interrupted, 1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(guard.snapshot().breaker.calls, 4, "all services of a guard share it");
}

/// 11.2: a service that fails to be ready is a failure of the operation, and is not called.
#[test]
fn c11_2_readiness_is_waited_for_in_the_attempt() {
    #[derive(Clone)]
    struct Slow {
        clock: VirtualClock,
        waits: Duration,
    }
    impl Service<u8> for Slow {
        type Response = u8;
        type Error = io::Error;
        type Future = std::future::Ready<io::Result<u8>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let clock = steadfast::Clock::from(self.clock.clone());
            let mut wait = pin!(clock.wait(self.waits));
            if self.waits.is_zero() {
                return Poll::Ready(Err(io::Error::other("its worker is gone")));
            }
            wait.as_mut().poll(cx).map(Ok)
        }

        fn call(&mut self, request: u8) -> Self::Future {
            std::future::ready(Ok(request))
        }
    }
    let clock = VirtualClock::new();
    let guard = Guard::builder("queue").clock(clock.clone()).total_timeout(secs(2)).build().unwrap();
    let layer = GuardLayer::new(guard);
    let mut gone = layer.layer(Slow { clock: clock.clone(), waits: Duration::ZERO });
    let ready = clock.run(poll_fn(|cx| gone.poll_ready(cx))).unwrap();
    assert!(ready.is_ok(), "the guarded service is always ready");
    assert!(matches!(clock.run(gone.call(1)).unwrap(), Err(GuardError::Operation { .. })));
    let never = layer.layer(Slow { clock: clock.clone(), waits: secs(3_600) });
    let limit = clock.run(never.oneshot(1)).unwrap().unwrap_err().limit();
    assert_eq!((limit, clock.now().as_nanos()), (Some(ErrorKind::Timeout), 2_000_000_000));
}
