//! Numbers for people.

const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// A number of bytes with decimal units: `90.9 MB`.
pub(crate) fn bytes(len: u64) -> String {
    if len < 1000 {
        return format!("{len} B");
    }
    scaled(len, &UNITS)
}

/// `90.9 MB (90,864,192 bytes)`, or `411 bytes`.
pub(crate) fn exact_bytes(len: u64) -> String {
    let exact = plural(len, "byte");
    if len < 1000 { exact } else { format!("{} ({exact})", bytes(len)) }
}

/// A count with a decimal suffix: `22.7 M`.
pub(crate) fn count(n: u64) -> String {
    if n < 10_000 {
        return grouped(n);
    }
    scaled(n, &["k", "M", "G", "T", "P", "E"])
}

fn scaled(n: u64, units: &[&str]) -> String {
    let mut value = n as f64 / 1000.0;
    let mut idx = 0;
    // Compared with what rounding to one decimal would print, so that 999,999 is 1.0 MB and not 1000.0 kB.
    while value >= 999.95 && idx + 1 < units.len() {
        value /= 1000.0;
        idx += 1;
    }
    format!("{value:.1} {}", units[idx])
}

/// A count with separators: `22,713,728`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `part` of `whole` in percent; of nothing, nothing. Only none is shown as 0 and only all as 100.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    if part > 0 && share < 0.05 {
        "< 0.1 %".to_owned()
    } else if part < whole && share >= 99.95 {
        "> 99.9 %".to_owned()
    } else {
        format!("{share:.1} %")
    }
}

/// A number of any magnitude: `0.5`, `1.25e-9`.
pub(crate) fn float(value: f64) -> String {
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        trimmed(format!("{value:.6}"))
    } else {
        format!("{value:.3e}")
    }
}

/// Without the zeros at the end of a decimal fraction.
fn trimmed(text: String) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `[2, 3]`; of more dimensions than any real tensor has, the first ones.
pub(crate) fn shape(shape: &[usize]) -> String {
    const SHOWN: usize = 16;
    match shape.get(..SHOWN) {
        Some(first) if shape.len() > SHOWN => {
            let first: Vec<String> = first.iter().map(ToString::to_string).collect();
            format!("[{}, ... {} dimensions]", first.join(", "), grouped(shape.len() as u64))
        }
        _ => format!("{shape:?}"),
    }
}

/// `1 tensor`, `2 tensors`.
pub(crate) fn plural(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// A duration in the unit that suits it.
pub(crate) fn duration(time: core::time::Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{micros:.0} us")
    } else if micros < 1e6 {
        format!("{:.1} ms", micros / 1e3)
    } else {
        format!("{:.2} s", micros / 1e6)
    }
}

/// A duration in whole seconds, minutes and hours: `41 s`, `3 min 20 s`, `1 h 05 min`.
pub(crate) fn span(time: core::time::Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", grouped(seconds / 3600), seconds % 3600 / 60),
    }
}

/// Seconds since 1970 as a date and a time: `2026-11-21 06:12:05 UTC`.
pub(crate) fn unix_time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    // Counted from 1 March of year 0, so that the leap day ends a year; 146,097 days are 400 years.
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_rounding_would_show_a_thousand() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1000), "1.0 kB");
        assert_eq!(bytes(999_949), "999.9 kB");
        assert_eq!(bytes(999_950), "1.0 MB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!(count(9_999), "9,999");
        assert_eq!(count(22_713_728), "22.7 M");
    }

    #[test]
    fn numbers_keep_what_matters() {
        for (value, text) in
            [(0.0, "0"), (0.5, "0.5"), (11.296253, "11.296253"), (1.25e-9, "1.250e-9"), (100.0, "100")]
        {
            assert_eq!(float(value), text);
        }
        assert_eq!(float(f64::INFINITY), "inf");
    }

    #[test]
    fn shapes_are_shown_in_bounds() {
        assert_eq!((shape(&[]), shape(&[2, 3])), ("[]".into(), "[2, 3]".into()));
        assert_eq!(shape(&[1; 16]), format!("{:?}", [1; 16]));
        assert_eq!(
            shape(&[0; 1000]),
            "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ... 1,000 dimensions]"
        );
    }

    #[test]
    fn shares_are_not_rounded_to_none_or_all() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(
            (percent(0, 9), percent(0, 0), percent(9, 9)),
            ("0.0 %".into(), "0.0 %".into(), "100.0 %".into())
        );
        assert_eq!((percent(1, 100_000), percent(99_999, 100_000)), ("< 0.1 %".into(), "> 99.9 %".into()));
    }

    #[test]
    fn spans_are_in_whole_units() {
        let shown = [0.4, 59.4, 60.0, 200.0, 3599.6, 3_900.0, 1e9];
        let shown = shown.map(|seconds| span(core::time::Duration::from_secs_f64(seconds)));
        assert_eq!(
            shown,
            ["0 s", "59 s", "1 min 00 s", "3 min 20 s", "1 h 00 min", "1 h 05 min", "277,777 h 46 min"]
        );
    }

    #[test]
    fn times_are_calendar_times() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_241_525, "2026-11-21 06:12:05 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(unix_time(seconds), text);
        }
        assert!(unix_time(u64::MAX).ends_with("UTC"));
    }

    #[test]
    fn separators_stand_every_three_digits() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(123), "123");
        assert_eq!(grouped(1234), "1,234");
        assert_eq!(grouped(22_713_728), "22,713,728");
    }
}
