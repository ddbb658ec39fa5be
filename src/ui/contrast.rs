//! Contrast of colours, by WCAG 2.

/// A colour: its red, green and blue.
pub type Rgb = (u8, u8, u8);

/// Least contrast of text by level AA of WCAG 2.
pub const LEAST: f64 = 4.5;

/// Relative luminance of a colour, by WCAG 2.
pub fn luminance((red, green, blue): Rgb) -> f64 {
    let linear = |part: u8| match f64::from(part) / 255.0 {
        part if part <= 0.039_28 => part / 12.92,
        part => ((part + 0.055) / 1.055).powf(2.4),
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// Contrast of two colours, from 1 to 21.
pub fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Mixes two colours. `share` is the weight of the second colour, from 0 to 255.
pub fn mixed(one: Rgb, other: Rgb, share: u8) -> Rgb {
    let mix = |one: u8, other: u8| {
        let (own, others) = (u16::from(255 - share), u16::from(share));
        let sum = u16::from(one) * own + u16::from(other) * others;
        u8::try_from((sum + 127) / 255).unwrap_or(u8::MAX)
    };
    (mix(one.0, other.0), mix(one.1, other.1), mix(one.2, other.2))
}

/// Returns the shade of a colour that has at least the contrast `least` on all backgrounds and is nearest to the
/// colour. If there is no such shade, returns black or white, whichever has the higher contrast.
pub fn readable(colour: Rgb, backgrounds: &[Rgb], least: f64) -> Rgb {
    const ENDS: [Rgb; 2] = [(0, 0, 0), (255, 255, 255)];
    let worst = |colour| backgrounds.iter().map(|behind| contrast(colour, *behind)).fold(21.0, f64::min);
    for share in 0..=255 {
        let shades = ENDS.map(|end| mixed(colour, end, share));
        if let Some(shade) = shades.into_iter().find(|shade| worst(*shade) >= least) {
            return shade;
        }
    }
    if worst(ENDS[0]) > worst(ENDS[1]) { ENDS[0] } else { ENDS[1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known contrasts of WCAG 2.1, G18: black on white has 21:1; #767676 is the lightest grey with 4.5:1 on white.
    #[test]
    fn greys_have_the_contrast_that_is_published_for_them() {
        let white = (255, 255, 255);
        assert!((contrast((0, 0, 0), white) - 21.0).abs() < 0.001);
        assert!(contrast((0x76, 0x76, 0x76), white) >= LEAST);
        assert!(contrast((0x77, 0x77, 0x77), white) < LEAST);
        assert_eq!(readable((0x77, 0x77, 0x77), &[white], LEAST), (0x76, 0x76, 0x76));
    }

    #[test]
    fn what_can_be_read_stays_and_the_rest_becomes_lighter_or_darker() {
        let (dark, light) = ((0x28, 0x2a, 0x36), (0xf8, 0xf8, 0xf2));
        assert_eq!(readable(light, &[dark], LEAST), light);
        let comment = readable((0x62, 0x72, 0xa4), &[dark], LEAST);
        assert!(contrast(comment, dark) >= LEAST && luminance(comment) < luminance(light), "{comment:?}");
        let grey = (0x80, 0x80, 0x80);
        assert_eq!(readable(grey, &[grey], 7.0), (0, 0, 0), "no shade has it, and white has less");
    }
}
