//! Progress: one line on standard error, on terminals only.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::style::Style;
use crate::terminal::escape::escaped;
use crate::terminal::human;
use crate::terminal::width;

/// Time between two drawings.
const INTERVAL: Duration = Duration::from_millis(200);
/// Work that took less is reported without its duration.
const WORTH_TELLING: Duration = Duration::from_secs(1);
/// Cells of the bar.
const BAR_CELLS: usize = 12;
/// Minimum columns for the name of a tensor.
const NAME_CELLS: usize = 12;
/// Width of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;

/// The line, of which a process has one.
static LINE: Mutex<Line> = Mutex::new(Line::Absent);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Absent,
    Drawn,
    /// Never drawn again.
    Closed,
}

/// Removes the line and prevents that another one is drawn: for a process that prints its last message while other
/// threads are still working.
pub(crate) fn close() {
    change(Line::Closed, "");
}

/// Removes the line, before something else is written to standard error.
pub(super) fn erase() {
    change(Line::Absent, "");
}

fn draw(text: &str) {
    change(Line::Drawn, text);
}

fn change(to: Line, text: &str) {
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    if *line == Line::Drawn || (*line == Line::Absent && to == Line::Drawn) {
        let _ = write!(io::stderr(), "\r\u{1b}[2K{text}");
    }
    if *line != Line::Closed {
        *line = to;
    }
}

/// `, in 41 s` for work of a second or more, else nothing.
pub(super) fn took(time: Duration) -> String {
    if time < WORTH_TELLING { String::new() } else { format!(", in {}", human::span(time)) }
}

/// Progress of work on a known number of bytes; its line is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    meter: Meter,
    /// When the work began; `None` if no line is wanted.
    begun: Option<Instant>,
    style: Style,
}

impl Progress {
    pub(super) fn new(label: &'static str, total: u64, begun: Option<Instant>, style: Style) -> Self {
        Self { meter: Meter { label, total, ..Meter::default() }, begun, style }
    }

    /// Sets how many bytes there will be.
    pub(crate) fn expect(&mut self, total: u64) {
        self.meter.total = total;
    }

    /// Names what is being worked on: a tensor, a file.
    pub(crate) fn item(&mut self, name: &str) {
        if self.begun.is_some() {
            name.clone_into(&mut self.meter.item);
        }
    }

    /// Counts `len` more bytes as done.
    pub(crate) fn advance(&mut self, len: usize) {
        self.meter.done = self.meter.done.saturating_add(len as u64);
        let Some(now) = self.begun.map(|begun| begun.elapsed()) else { return };
        if self.meter.is_due(now) {
            draw(&self.meter.line(now, self.style));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.begun.is_some() {
            erase();
        }
    }
}

/// What a line counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    #[default]
    Bytes,
    Parts,
}

/// What the line says at a given time since the work began.
#[derive(Debug, Default)]
struct Meter {
    label: &'static str,
    unit: Unit,
    total: u64,
    done: u64,
    item: String,
    drawn: Duration,
}

impl Meter {
    /// Whether to draw now; if so, the next time is an interval later.
    fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now.saturating_sub(self.drawn) >= INTERVAL;
        if is_due {
            self.drawn = now;
        }
        is_due
    }

    /// As much as fits into the width; the last column stays free, because some terminals wrap there.
    fn line(&self, now: Duration, style: Style) -> String {
        let columns = style.width().unwrap_or(USUAL_WIDTH).saturating_sub(1);
        let Self { label, total, .. } = *self;
        let done = self.done.min(total);
        let rate = done as f64 / now.as_secs_f64().max(1e-6);
        let percent = human::percent(done, total);
        let left = Duration::try_from_secs_f64((total - done) as f64 / rate).ok();
        let left = left.filter(|_| now >= WORTH_TELLING).map(|left| format!("{} left", human::span(left)));
        let (rate, amount) = match self.unit {
            Unit::Bytes => {
                let amount = format!("{} of {}", human::bytes(done), human::bytes(total));
                (Some(format!("{}/s", human::bytes(rate as u64))), amount)
            }
            Unit::Parts => (None, format!("{} of {}", human::grouped(done), human::grouped(total))),
        };
        // The shortest form first: what is added later is the first to be left out.
        let mut shown = percent.clone();
        for parts in [
            [None, None, left.as_deref()],
            [None, rate.as_deref(), left.as_deref()],
            [Some(amount.as_str()), rate.as_deref(), left.as_deref()],
        ] {
            let parts: Vec<&str> = [Some(percent.as_str())].into_iter().chain(parts).flatten().collect();
            let longer = parts.join(", ");
            if width::of(label) + 1 + longer.len() <= columns {
                shown = longer;
            }
        }
        let mut rest = columns.saturating_sub(width::of(label) + 1 + shown.len());
        // The length of a name does not count, so that the bar does not come and go with the names.
        let for_name = if self.item.is_empty() { 0 } else { 2 * NAME_CELLS };
        let bar = if rest > BAR_CELLS + for_name {
            rest -= BAR_CELLS + 1;
            style.full_bar(done, total, BAR_CELLS) + " "
        } else {
            String::new()
        };
        let item = if self.item.is_empty() || rest < NAME_CELLS {
            String::new()
        } else {
            format!(": {}", style.shorten(&escaped(&self.item), rest - 2))
        };
        format!("{label} {bar}{shown}{item}")
    }
}

/// How many parts of some work are done, of how many; both grow.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    done: AtomicU64,
    total: AtomicU64,
}

impl Parts {
    /// So many more parts are to be done.
    pub(crate) fn expect(&self, count: usize) {
        self.total.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// One more is done.
    pub(crate) fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// A line that shows how long work has taken whose end is not known, or how many of its parts are done as soon as it has
/// [`parts`](Self::parts); removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    parts: Arc<Parts>,
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Busy {
    pub(super) fn new(label: &'static str, begun: Option<Instant>, style: Style) -> Self {
        let parts = Arc::new(Parts::default());
        let Some(begun) = begun else { return Self { parts, ticker: None } };
        let (stop, stopped) = mpsc::channel();
        let counted = Arc::clone(&parts);
        let tick = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                draw(&busy_line(label, &counted, begun.elapsed(), style));
            }
            erase();
        };
        // Without a thread the work is done all the same.
        let ticker = thread::Builder::new().spawn(tick).ok().map(|thread| (stop, thread));
        Self { parts, ticker }
    }

    /// What is known of the parts of the work.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }
}

fn busy_line(label: &'static str, parts: &Parts, now: Duration, style: Style) -> String {
    let (done, total) = (parts.done.load(Ordering::Relaxed), parts.total.load(Ordering::Relaxed));
    match total {
        0 => format!("{label}, {}", human::span(now)),
        _ => Meter { label, unit: Unit::Parts, total, done, ..Meter::default() }.line(now, style),
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticker.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "model.layers.13.mlp.up_proj.weight";

    fn meter() -> Meter {
        let item = NAME.to_owned();
        Meter { label: "quantizing", total: 4_600_000_000, done: 1_472_000_000, item, ..Meter::default() }
    }

    fn line(width: usize) -> String {
        meter().line(Duration::from_secs(12), Style::PLAIN.with_width(width))
    }

    #[test]
    fn progress_shows_bar_percent_amount_rate_time_left_and_tensor() {
        assert_eq!(
            line(140),
            "quantizing ███▉         32.0 %, 1.5 GB of 4.6 GB, 122.7 MB/s, 26 s left: model.layers.13.mlp.up_proj.weight"
        );
    }

    #[test]
    fn progress_fits_every_width() {
        for (width, shown) in [
            (80, "quantizing 32.0 %, 1.5 GB of 4.6 GB, 122.7 MB/s, 26 s left: model.lay…roj.weight"),
            (60, "quantizing 32.0 %, 1.5 GB of 4.6 GB, 122.7 MB/s, 26 s left"),
            (40, "quantizing 32.0 %, 122.7 MB/s, 26 s left"),
            (30, "quantizing 32.0 %, 26 s left"),
            (20, "quantizing 32.0 %"),
        ] {
            let found = line(width + 1);
            assert_eq!(found, shown);
            assert!(width::of(&found) <= width);
        }
    }

    #[test]
    fn time_left_is_told_after_a_second() {
        let early = meter().line(Duration::from_millis(999), Style::PLAIN);
        assert!(!early.contains("left"), "{early}");
    }

    #[test]
    fn the_line_is_drawn_five_times_a_second() {
        let mut meter = meter();
        let due = (0..=1000).filter(|ms| meter.is_due(Duration::from_millis(*ms)));
        assert_eq!(due.collect::<Vec<_>>(), [200, 400, 600, 800, 1000]);
    }

    #[test]
    fn work_that_is_more_than_was_expected_is_all_of_it() {
        let meter = Meter { label: "reading", total: 10, done: 12, ..Meter::default() };
        let line = meter.line(Duration::from_secs(2), Style::PLAIN);
        assert_eq!(line, "reading ████████████ 100.0 %, 10 B of 10 B, 5 B/s, 0 s left");
        let nothing = Meter::default().line(Duration::ZERO, Style::PLAIN);
        assert!(nothing.contains("0.0 %"), "{nothing}");
    }

    #[test]
    fn work_without_parts_shows_its_time_and_with_parts_how_many_are_done() {
        let (parts, style) = (Parts::default(), Style::PLAIN.with_width(60));
        let line = |parts: &Parts| busy_line("training", parts, Duration::from_secs(8), style);
        assert_eq!(line(&parts), "training, 8 s");
        parts.expect(3);
        parts.expect(1);
        assert_eq!(line(&parts), "training              0.0 %, 0 of 4");
        (0..2).for_each(|_| parts.advance());
        assert_eq!(line(&parts), "training ██████       50.0 %, 2 of 4, 8 s left");
    }

    #[test]
    fn durations_are_told_from_one_second_on() {
        assert_eq!(took(Duration::from_millis(999)), "");
        assert_eq!(took(Duration::from_millis(41_400)), ", in 41 s");
        assert_eq!(took(Duration::from_secs(200)), ", in 3 min 20 s");
    }
}
