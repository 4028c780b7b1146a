//! Happy eyeballs (RFC 8305): several addresses are tried, each a little after the one before, and the first to
//! connect wins.
//!
//! A failure starts the next address at once. The delay shrinks with the time there is, so that one address that
//! answers nothing cannot eat the whole `connect_timeout`.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// RFC 8305 section 5 recommends 250 ms between two attempts, and allows no less than 10 ms.
const DELAY: Duration = Duration::from_millis(250);
const LEAST_DELAY: Duration = Duration::from_millis(10);

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// Connects to whichever of the addresses answers first. Dropping the future drops every attempt.
pub(crate) async fn connect(addresses: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return TcpStream::connect(only).await;
    }
    let delay = delay(addresses.len(), within);
    let mut race = Race { waiting: interleave(addresses), running: Vec::new(), delay, failed: None };
    let mut timer = pin!(sleep(delay));
    poll_fn(|cx| race.poll(cx, timer.as_mut())).await
}

/// The last of `count` addresses still has a fair share of the time left when it is tried.
fn delay(count: usize, within: Duration) -> Duration {
    let share = within / u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
    share.clamp(LEAST_DELAY, DELAY)
}

/// The families in turn, each in the resolver's order, last first (RFC 8305 section 4).
fn interleave(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let mut one = addresses.iter().filter(|address| address.is_ipv6() == first_is_v6);
    let mut other = addresses.iter().filter(|address| address.is_ipv6() != first_is_v6);
    let mut order = Vec::with_capacity(addresses.len());
    loop {
        let pair = (one.next(), other.next());
        order.extend(pair.0.into_iter().chain(pair.1));
        if pair == (None, None) {
            break;
        }
    }
    order.reverse();
    order
}

struct Race {
    /// Not tried yet; the next one is the last.
    waiting: Vec<SocketAddr>,
    running: Vec<Connecting>,
    delay: Duration,
    failed: Option<io::Error>,
}

impl Race {
    fn poll(&mut self, cx: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Poll<io::Result<TcpStream>> {
        loop {
            let mut index = 0;
            while let Some(connecting) = self.running.get_mut(index) {
                match connecting.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(error)) => {
                        self.failed.get_or_insert(error);
                        drop(self.running.swap_remove(index));
                        if self.start_next() {
                            timer.as_mut().reset(Instant::now() + self.delay);
                        }
                    }
                    Poll::Pending => index += 1,
                }
            }
            if self.running.is_empty() && !self.start_next() {
                let error = self.failed.take().unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into());
                return Poll::Ready(Err(error));
            }
            if self.running.len() > index {
                // One was just started and must be polled once.
                continue;
            }
            if self.waiting.is_empty() || timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            timer.as_mut().reset(Instant::now() + self.delay);
            self.start_next();
        }
    }

    fn start_next(&mut self) -> bool {
        let Some(address) = self.waiting.pop() else { return false };
        self.running.push(Box::pin(TcpStream::connect(address)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns_and_keep_the_resolvers_order() {
        let given = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "1.1.1.2:1"].map(address);
        let mut order = interleave(&given);
        order.reverse();
        assert_eq!(order, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "[::3]:1"].map(address));
    }

    #[test]
    fn the_delay_leaves_every_address_a_share_of_the_time() {
        assert_eq!(delay(2, Duration::from_secs(2)), DELAY);
        assert_eq!(delay(2, Duration::from_millis(300)), Duration::from_millis(100));
        assert_eq!(delay(1_000, Duration::from_millis(300)), LEAST_DELAY);
        assert_eq!(delay(usize::MAX, Duration::MAX), DELAY);
    }
}
