//! What is asked of the machine: CPU time, a core of one's own, and a child process that counts allocations.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use crate::Failure;
use crate::rounds::Sample;

/// Times the work of `operations` operations: the wall clock, and the CPU time of all threads of this process.
///
/// # Errors
///
/// That of the work, or a system without a CPU clock.
pub fn time(operations: usize, work: impl FnOnce() -> Result<(), Failure>) -> Result<Sample, Failure> {
    let (wall, cpu) = (Instant::now(), ProcessTime::try_now()?);
    work()?;
    let (cpu, wall) = (cpu.try_elapsed()?, wall.elapsed());
    Ok(Sample { wall_ns: per(wall, operations), cpu_ns: per(cpu, operations) })
}

/// Nanoseconds of each of `operations` equal parts.
pub fn per(time: Duration, operations: usize) -> f64 {
    time.as_secs_f64() * 1e9 / operations.max(1) as f64
}

/// Keeps the calling thread, and threads that it starts later, on one core.
///
/// # Errors
///
/// The system does not have that core, or does not let us choose.
pub fn pin(core: usize) -> Result<(), Failure> {
    if core_affinity::set_for_current(core_affinity::CoreId { id: core }) {
        Ok(())
    } else {
        Err(format!("cannot stay on core {core}").into())
    }
}

/// Heap allocations per operation, by contender, as the program `allocations` counts them.
///
/// # Errors
///
/// The program fails, or prints something else than names and counts.
pub fn allocations(program: &str, arguments: &[&str]) -> Result<BTreeMap<String, f64>, Failure> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let (name, count) = line.split_once('\t').ok_or_else(|| format!("not a count: {line:?}"))?;
        counts.insert(name.to_owned(), count.parse()?);
    }
    Ok(counts)
}
