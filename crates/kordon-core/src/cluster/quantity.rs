//! Amounts of resources, as the API writes them.

/// Parses a Kubernetes quantity into thousandths of its unit, rounded up as upstream's `MilliValue`.
///
/// None if the text is not a quantity; amounts beyond `i64` saturate.
pub fn parse_milli(text: &str) -> Option<i64> {
    parse(text, 3)
}

/// Parses a quantity into whole units, rounded up as upstream's `Value`. Otherwise like [`parse_milli`].
pub fn parse_units(text: &str) -> Option<i64> {
    parse(text, 0)
}

/// Parses a quantity into billionths of its unit, without rounding; None if the text is not a quantity, has more than
/// nine decimals, or is beyond `i128`.
pub fn parse_nano(text: &str) -> Option<i128> {
    let (number, suffix) = split(text);
    let (negative, whole, fraction) = parts(number)?;
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let decimals = i32::try_from(fraction.len()).ok()?;
    let (factor, exponent) = match Scale::parse(suffix)? {
        Scale::Decimal(exponent) => (1, exponent),
        Scale::Binary(power) => (1_i128 << (10 * power), 0),
    };
    let amount = digits.checked_mul(factor)?;
    let shift = exponent + 9 - decimals;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    let amount = if shift >= 0 {
        amount.checked_mul(power)?
    } else {
        (amount % power == 0).then_some(amount / power)?
    };
    Some(if negative { -amount } else { amount })
}

/// Formats an amount of a resource for users: cpu in thousandths as `250m` or `1.5`, bytes as `512Mi`, others as they
/// are.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn amount(resource: &str, amount: i64) -> String {
    const MEBI: f64 = 1024.0 * 1024.0;
    match resource {
        "cpu" if amount.abs() < 1000 => format!("{amount}m"),
        "cpu" if amount % 1000 == 0 => format!("{}", amount / 1000),
        "cpu" => format!("{:.1}", amount as f64 / 1000.0),
        _ if resource != "memory"
            && resource != "ephemeral-storage"
            && !resource.starts_with("hugepages-") =>
        {
            amount.to_string()
        }
        _ if amount.unsigned_abs() < 1 << 20 => amount.to_string(),
        _ if amount.unsigned_abs() < 1 << 30 => format!("{:.0}Mi", amount as f64 / MEBI),
        _ if amount % (1 << 30) == 0 => format!("{}Gi", amount >> 30),
        _ => format!("{:.1}Gi", amount as f64 / MEBI / 1024.0),
    }
}

/// Parses a quantity and multiplies it by ten to the power of `places`, rounded up.
fn parse(text: &str, places: i32) -> Option<i64> {
    let (number, suffix) = split(text);
    let (negative, whole, fraction) = parts(number)?;
    let amount = match Scale::parse(suffix)? {
        Scale::Decimal(exponent) => decimal(whole, fraction, places + exponent),
        Scale::Binary(power) => binary(whole, fraction, places, power),
    };
    Some(if negative { -amount } else { amount })
}

/// Splits a quantity into its number and its suffix.
fn split(text: &str) -> (&str, &str) {
    let digits =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    text.split_at(digits)
}

/// Splits the text of a number into its sign (true: negative), its whole part and its fraction; `None` for other text.
fn parts(number: &str) -> Option<(bool, &str, &str)> {
    let (negative, number) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = whole.len() + fraction.len() > 0 && all_digits(whole) && all_digits(fraction);
    is_number.then_some((negative, whole, fraction))
}

/// Computes `whole.fraction * 10^exponent`, rounded up. Moves the decimal point in the text, because the number itself
/// may not fit into an integer.
fn decimal(whole: &str, fraction: &str, exponent: i32) -> i64 {
    let exponent = isize::try_from(exponent).expect("at most 33");
    let zeros = "0".repeat(exponent.unsigned_abs());
    let digits = format!("{zeros}{whole}{fraction}{zeros}");
    let point = (zeros.len() + whole.len()).strict_add_signed(exponent);
    let (units, rest) = digits.split_at(point);
    let units = match units.trim_start_matches('0') {
        "" => 0,
        units => units.parse().unwrap_or(i64::MAX),
    };
    units.saturating_add(i64::from(rest.bytes().any(|digit| digit != b'0')))
}

/// Computes `whole.fraction * 1024^power * 10^places`, rounded up. A step of the computation saturates only if the
/// result is beyond `i64`.
fn binary(whole: &str, fraction: &str, places: i32, power: u32) -> i64 {
    // Digits after the 18th are ignored, so that results within `i64` do not overflow `i128` on the way.
    let fraction = &fraction[..fraction.len().min(18)];
    let mantissa: i128 = format!("{whole}{fraction}").parse().unwrap_or(i128::MAX);
    let amount = mantissa.saturating_mul(1_i128 << (10 * power));
    let decimals = i32::try_from(fraction.len()).expect("at most 18");
    let factor = 10_i128.pow((places - decimals).unsigned_abs());
    let amount = if places >= decimals {
        amount.saturating_mul(factor)
    } else {
        amount.saturating_add(factor - 1) / factor
    };
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// Factor of a suffix: a power of ten or of 1024.
#[derive(Clone, Copy)]
enum Scale {
    Decimal(i32),
    Binary(u32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(1),
            "Mi" => Self::Binary(2),
            "Gi" => Self::Binary(3),
            "Ti" => Self::Binary(4),
            "Pi" => Self::Binary(5),
            "Ei" => Self::Binary(6),
            _ => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                Self::Decimal(exponent.parse().ok().filter(|exponent: &i32| exponent.abs() <= 30)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_every_notation_parse() {
        let milli =
            [("1", 1000), ("100m", 100), ("0.5", 500), ("1.5Gi", 1_610_612_736_000), ("2k", 2_000_000)];
        for (text, expected) in milli {
            assert_eq!(parse_milli(text), Some(expected), "{text}");
        }
        assert_eq!(parse_units("1E"), Some(1_000_000_000_000_000_000));
        assert_eq!(parse_milli("1E"), Some(i64::MAX), "saturates");
        assert_eq!(parse_units("1e3"), Some(1000));
        assert_eq!(parse_units("1500m"), Some(2), "rounds up");
        assert_eq!(parse_milli("1n"), Some(1), "rounds up");
        assert_eq!(parse_units("8Gi"), Some(8 << 30));
        assert_eq!(parse_units("1000000000000000000000000000000000001.00000000e-12"), Some(i64::MAX));
        assert_eq!(
            parse_units("10000000000000000000000000001.000000000000e-22"),
            Some(1_000_001),
            "rounds up"
        );
        assert_eq!(parse_milli("0.0000000000000000000001"), Some(1), "rounds up");
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in ["", ".", "-", "1 Gi", "Gi", "1..2", "1e", "1e99", "0x10", "one"] {
            assert_eq!(parse_milli(text), None, "{text:?}");
        }
    }
}
