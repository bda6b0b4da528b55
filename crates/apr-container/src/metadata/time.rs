//! Times as Unix seconds and as RFC 3339.

/// Seconds since 1970 of a decimal number or of an RFC 3339 time; `None` for anything else and for earlier times.
pub(super) fn unix_seconds(text: &str) -> Option<u64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let (date, rest) = text.as_bytes().split_at_checked(10)?;
    let (time, mut rest) = rest.split_at_checked(9)?;
    let ([.., b'-', _, _, b'-', _, _], [b'T' | b't' | b' ', _, _, b':', _, _, b':', _, _]) = (date, time)
    else {
        return None;
    };
    let (year, month, day) = (number(date, 0, 4)?, number(date, 5, 2)?, number(date, 8, 2)?);
    let (hour, minute, second) = (number(time, 1, 2)?, number(time, 4, 2)?, number(time, 7, 2)?);
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(is_leap_year),
        _ => 31,
    };
    // 60 is a leap second.
    if !(1..=12).contains(&month)
        || !(1..=days_in_month).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    if let [b'.', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = fraction.get(digits..).filter(|_| digits > 0)?;
    }
    let (is_ahead, offset) = match rest {
        [b'Z' | b'z'] => (true, 0),
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(rest, 1, 2)?, number(rest, 4, 2)?);
            (*sign == b'+', Some(hours * 3600 + minutes * 60).filter(|_| hours < 24 && minutes < 60)?)
        }
        _ => return None,
    };
    // Years that begin in March: the day that comes and goes is the last one.
    let (year, month_from_march) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days_before_month = (153 * month_from_march + 2) / 5;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + days_before_month + day - 1;
    // 1 March of year 0 to 1 January 1970.
    let seconds = days.checked_sub(719_468)? * 86_400 + hour * 3600 + minute * 60 + second;
    if is_ahead { seconds.checked_sub(offset) } else { Some(seconds + offset) }
}

/// The number of `len` digits at `start`.
fn number(text: &[u8], start: usize, len: usize) -> Option<u64> {
    text.get(start..start + len)?
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::unix_seconds;

    #[test]
    fn both_forms_lead_to_seconds() {
        for (text, seconds) in [
            ("0", 0),
            ("1795241427", 1_795_241_427),
            ("18446744073709551615", u64::MAX),
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T06:10:33Z", 1_795_241_433),
            ("2000-02-29t23:59:60.25z", 951_868_800),
            ("2024-12-31 23:30:00-01:00", 1_735_691_400),
            ("2024-02-29T12:00:00.123456789+05:30", 1_709_188_200),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(unix_seconds(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "-1",
            "1.5",
            "18446744073709551616",
            "2026-11-21",
            "2026-11-21T06:10:33",
            "2026-11-21T06:10:33.Z",
            "2026-11-21T06:10:33Zz",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+00:60",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "0000-01-01T00:00:00Z",
            "2026-01-0é",
            "２０２６-01-01T00:00:00Z",
        ] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }
}
