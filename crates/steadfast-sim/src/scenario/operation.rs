//! Who plays the script of a guarded operation.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::Clock;

use super::model::{Answer, OperationError};
use super::timeline::{TimeLine, show};
use super::upstream::next;

/// What an operation does that nothing is scripted for.
const HANGS: Answer = Answer { times: 1, after: Duration::ZERO, brings: None };

/// An operation that plays a script. Clones are the same operation.
#[derive(Clone, Debug)]
pub(super) struct Operation(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    clock: Clock,
    line: TimeLine,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<Answer>,
    calls: usize,
    in_flight: u64,
}

impl Operation {
    pub(super) fn new(name: &str, answers: &[Answer], clock: Clock, line: TimeLine) -> Self {
        let operation = Self(Arc::new(Inner { name: name.to_owned(), clock, line, state: Mutex::default() }));
        operation.play(answers);
        operation
    }

    /// Does these things from the next call on.
    pub(super) fn play(&self, answers: &[Answer]) {
        self.state().answers = answers.iter().cloned().collect();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it was called.
    pub(super) fn calls(&self) -> usize {
        self.state().calls
    }

    /// How many calls are running.
    pub(super) fn in_flight(&self) -> u64 {
        self.state().in_flight
    }

    /// One call.
    pub(super) async fn call(self) -> Result<String, OperationError> {
        let running = self.begin();
        self.0.line.note(self.0.clock.now(), &self.0.name, format!("operation: {}", words(&running.answer)));
        if !running.answer.after.is_zero() {
            self.0.clock.wait(running.answer.after).await;
        }
        match &running.answer.brings {
            Some(brings) => brings.clone(),
            None => pending().await,
        }
    }

    fn begin(&self) -> Running {
        let mut state = self.state();
        state.calls += 1;
        state.in_flight += 1;
        let answer = next(&mut state.answers, |answer| &mut answer.times).unwrap_or(HANGS);
        drop(state);
        Running { answer, operation: self.clone() }
    }
}

struct Running {
    answer: Answer,
    operation: Operation,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.operation.state().in_flight -= 1;
    }
}

fn words(answer: &Answer) -> String {
    let brings = match &answer.brings {
        Some(Ok(_)) => "ok".to_owned(),
        Some(Err(error)) => error.to_string(),
        None => "hangs".to_owned(),
    };
    if answer.after.is_zero() { brings } else { format!("{brings} after {}", show(answer.after)) }
}
