//! A small chart of numbers.

use super::human::float;
use super::style::Style;

/// Lines of bars.
const ROWS: usize = 6;

/// Most columns of bars, without a terminal and on a wide one.
const COLUMNS: usize = 60;

/// Columns of the labels at the left.
const LABEL: usize = 12;

/// Widest bar of a single point.
const MAX_WIDTH: usize = 3;

/// Bars of the values in their order, the least and the greatest at the left, the first and the last position below. Where there are more
/// points than columns, a bar is the mean of several. What is not finite has no bar, and is counted below.
pub(crate) fn lines(points: &[(u64, f64)], style: Style) -> Vec<String> {
    let available = style.width().map_or(COLUMNS, |width| width.saturating_sub(LABEL + 3).clamp(10, COLUMNS));
    let count = points.len().clamp(1, available);
    let width = (available / count).clamp(1, MAX_WIDTH);
    let bars: Vec<Option<f64>> = (0..count)
        .map(|idx| {
            let (start, end) = (idx * points.len() / count, (idx + 1) * points.len() / count);
            let finite = points.get(start..end).unwrap_or_default().iter().map(|(_, value)| *value);
            mean(finite.filter(|value| value.is_finite()))
        })
        .collect();
    let finite = || bars.iter().flatten().copied();
    let (least, greatest) =
        (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let mut lines = Vec::with_capacity(ROWS + 2);
    if least <= greatest {
        let heights: Vec<Option<usize>> =
            bars.iter().map(|bar| bar.map(|bar| height(bar, least, greatest))).collect();
        for row in (0..ROWS).rev() {
            let label = match row {
                0 => float(least),
                _ if row + 1 == ROWS && greatest > least => float(greatest),
                _ => String::new(),
            };
            let cells: String = heights
                .iter()
                .map(|height| style.block(height.map_or(0, |height| height.saturating_sub(8 * row)), width))
                .collect();
            lines.push(format!("{label:>LABEL$} {}", style.axis(cells.trim_end())));
        }
    }
    if let [(first, _), .., (last, _)] = points {
        let (first, last) = (first.to_string(), last.to_string());
        let gap = (count * width).saturating_sub(first.len()).max(last.len() + 1);
        lines.push(format!("{:LABEL$}   {first}{last:>gap$}", ""));
    }
    let left_out = points.iter().filter(|(_, value)| !value.is_finite()).count();
    if left_out > 0 {
        let long = format!("{:LABEL$}   {left_out} of {} values are not finite", "", points.len());
        let fits = style.width().is_none_or(|width| long.len() <= width);
        lines.push(if fits { long } else { format!("{left_out} not finite") });
    }
    lines
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut count = 0_u32;
    // Divided first: the sum of large numbers need not be finite.
    let values: Vec<f64> = values.inspect(|_| count += 1).collect();
    (count > 0).then(|| values.into_iter().map(|value| value / f64::from(count)).sum())
}

/// Eighths of a line; of the least value one.
fn height(value: f64, least: f64, greatest: f64) -> usize {
    // Halved: the difference of large numbers need not be finite.
    let span = greatest / 2.0 - least / 2.0;
    let share = if span > 0.0 { (value / 2.0 - least / 2.0) / span } else { 0.5 };
    1 + (share.clamp(0.0, 1.0) * (8 * ROWS - 1) as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::width;

    fn of(values: &[f64]) -> Vec<(u64, f64)> {
        (1..).map(|idx| idx * 10).zip(values.iter().copied()).collect()
    }

    #[test]
    fn a_falling_loss_falls() {
        let drawn = lines(&of(&[1.0, 0.5, 0.25, 0.125]), Style::PLAIN);
        assert_eq!(
            drawn,
            [
                "           1 │███",
                "             │███",
                "             │███",
                "             │███▅▅▅",
                "             │██████",
                "       0.125 │█████████▁▁▁",
                "               10        40"
            ]
        );
        let ascii = lines(&of(&[0.0, 1.0]), Style::PLAIN.in_ascii());
        assert_eq!((ascii[0].as_str(), ascii[5].as_str()), ("           1 |   ###", "           0 |######"));
    }

    #[test]
    fn any_numbers_are_drawn_within_the_terminal() {
        let tables: [&[f64]; 8] = [
            &[],
            &[f64::NAN],
            &[1.0],
            &[2.0; 500],
            &[f64::MAX, f64::MIN, 0.0],
            &[f64::MAX; 200],
            &[f64::INFINITY, 1.0, f64::NAN, -1.0, f64::NEG_INFINITY],
            &[5e-324, 0.0, -0.0],
        ];
        for values in tables {
            for columns in [20, 40, 200] {
                let drawn = lines(&of(values), Style::PLAIN.with_width(columns));
                assert!(
                    drawn.iter().all(|line| width::of(line) <= columns.max(LABEL + 13)),
                    "{values:?} {columns} {drawn:?}"
                );
            }
        }
        let drawn = lines(&of(&[1.0, f64::NAN, 2.0]), Style::PLAIN);
        assert!(
            drawn[5].ends_with("│▁▁▁   ███") && drawn[7].ends_with("1 of 3 values are not finite"),
            "{drawn:?}"
        );
    }
}
