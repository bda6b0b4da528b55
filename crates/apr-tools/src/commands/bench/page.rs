//! The tables as a page of HTML.

use core::fmt::Write as _;

use super::report::{BenchReport, COLUMNS, Set};
use crate::error::Failure;
use crate::output::{Destination, Overwrite};
use crate::terminal::{Console, escape};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
    table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
    th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #8884}\
    th:first-child,td:first-child,td[colspan]{text-align:left}\
    td.bar{background:linear-gradient(to right,#4a90d955 var(--share),transparent var(--share))}";

/// Writes the page.
///
/// # Errors
///
/// Those of writing.
pub(super) fn write(
    report: &BenchReport<'_>,
    destination: &Destination,
    console: &Console,
) -> Result<(), Failure> {
    let page = page(report);
    destination.fill(Overwrite::Refuse, |out| {
        out.write_all(page.as_bytes()).map_err(|error| destination.write_failure(&error))
    })?;
    if *destination != Destination::Stdout {
        console.wrote(format_args!("{}", escape::path(destination.label())));
    }
    Ok(())
}

fn page(report: &BenchReport<'_>) -> String {
    let mut page = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
    let subject = escaped(&report.subject());
    // Writing to a string cannot fail.
    let _ = write!(page, "<title>Formats: {subject}</title><style>{STYLE}</style><h1>What formats cost</h1>");
    let _ = write!(page, "<p>{subject}; {}</p>", escaped(&report.machine.line()));
    page.push_str(
        "<p>Times are medians; files are in the page cache. Bars show the share of the slowest.</p>",
    );
    report.sets.iter().for_each(|set| push_set(set, &mut page));
    page.push_str("<h2>What is lost</h2><ul>");
    for row in report.sets.first().iter().flat_map(|set| &set.formats) {
        let _ = write!(page, "<li>{}: {}</li>", row.format, escaped(row.lost));
    }
    page.push_str("</ul></html>\n");
    page
}

fn push_set(set: &Set, page: &mut String) {
    let _ = write!(page, "<h2>{}</h2><table><tr>", escaped(&set.title()));
    COLUMNS.iter().for_each(|column| {
        let _ = write!(page, "<th>{column}</th>");
    });
    page.push_str("</tr>");
    let times = |row: &super::report::FormatRow| {
        row.measured.map(|numbers| [numbers.write_seconds, numbers.read_seconds, numbers.read_one_seconds])
    };
    let all = || set.formats.iter().filter_map(times);
    let slowest = [0, 1, 2].map(|column| all().map(|times| times[column]).fold(0.0, f64::max));
    for row in &set.formats {
        let _ = write!(page, "<tr><td>{}</td>", row.format);
        match set.cells(row) {
            Ok(cells) => {
                for (column, cell) in cells.iter().enumerate() {
                    let time = column.checked_sub(2).filter(|time| *time < 3);
                    match time.zip(times(row)) {
                        Some((time, times)) => {
                            let share = 100.0 * times[time] / slowest[time].max(f64::MIN_POSITIVE);
                            let _ =
                                write!(page, "<td class=\"bar\" style=\"--share:{share:.1}%\">{cell}</td>");
                        }
                        None => {
                            let _ = write!(page, "<td>{cell}</td>");
                        }
                    }
                }
            }
            Err(why) => {
                let _ = write!(page, "<td colspan=\"{}\">{}</td>", COLUMNS.len() - 1, escaped(&why));
            }
        }
        page.push_str("</tr>");
    }
    page.push_str("</table>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
