//! `apr` interrupted at random times: remaining files, messages and permissions.
//!
//! Each command runs over and over and gets SIGINT, SIGTERM or SIGKILL somewhere between its start and a little more than its
//! usual duration, with and without an old output. What has to hold is the table of signals in `docs/cli.md`.

#[cfg(unix)]
mod bench;
#[cfg(unix)]
mod command;

use crate::task::{Failure, Outcome, Session};

const USAGE: &str = "interrupt [ROUNDS]";

/// Default number of rounds of each command.
const ROUNDS: u32 = 200;

fn rounds(args: &[String]) -> Result<u32, Failure> {
    match args {
        [] => Ok(ROUNDS),
        [rounds] => rounds.parse().map_err(|_| Failure::Usage(USAGE.to_owned())),
        _ => Err(Failure::Usage(USAGE.to_owned())),
    }
}

/// Interrupts every command and prints what came of it.
#[cfg(unix)]
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let rounds = rounds(args)?;
    let bench = bench::Bench::new(session)?;
    let signals = bench::signals();
    if signals.len() < bench::Signal::ALL.len() {
        session
            .skip("SIGINT or SIGTERM of `apr`", "they are ignored here, as in background jobs of a script");
    }
    println!("| command | rounds | in time | interrupted | complete | before `main` | left after SIGKILL |");
    println!("|---|---:|---:|---:|---:|---:|---|");
    let mut broken = Vec::new();
    for command in command::COMMANDS {
        let tally = bench.interrupt(command, rounds, &signals, &mut broken)?;
        println!("| `{}` | {rounds} | {tally}", command.name);
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("{} broken promises:\n{}", broken.len(), broken.join("\n")).into())
    }
}

/// The tested behaviour is defined for Unix only.
#[cfg(not(unix))]
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    rounds(args)?;
    session.skip("interrupt", "this is no Unix system");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_rounds_is_an_argument() {
        let rounds = |args: &[&str]| rounds(&args.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(rounds(&[]).unwrap(), ROUNDS);
        assert_eq!(rounds(&["7"]).unwrap(), 7);
        assert!(matches!(rounds(&["many"]), Err(Failure::Usage(_))));
        assert!(matches!(rounds(&["1", "2"]), Err(Failure::Usage(_))));
    }
}
