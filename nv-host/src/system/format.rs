//! Records of the log as text: `printf` of C, on values that a GPU left. Whatever the words are, the result is some text.

use std::fmt::Write as _;

/// The kinds of records (`system.cu`).
const PRINT: u32 = 1;
const FAILURE: u32 = 2;
/// The length of a string that was a null pointer.
const NULL: u32 = u32::MAX;
/// More than that no field is padded to, whatever the format says.
const WIDEST: usize = 4096;

/// All records, one after the other.
pub(super) fn records(words: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = words;
    while let Some(&size) = rest.first() {
        let Some((record, after)) = rest.split_at_checked(size as usize).filter(|_| size != 0)
        else {
            break;
        };
        let mut record = Words(record.get(1..).unwrap_or_default());
        match record.word() {
            PRINT => print(&mut text, &mut record),
            FAILURE => failure(&mut text, &mut record),
            _ => {}
        }
        rest = after;
    }
    text
}

/// The words of a record that are left; zeros behind its end.
struct Words<'a>(&'a [u32]);

impl Words<'_> {
    fn word(&mut self) -> u32 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn wide(&mut self) -> u64 {
        let low = u64::from(self.word());
        u64::from(self.word()) << 32 | low
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let length = self.word();
        if length == NULL {
            return None;
        }
        let length = (length as usize).min(self.0.len() * 4);
        let (own, rest) = self.0.split_at(length.div_ceil(4));
        self.0 = rest;
        let mut bytes: Vec<u8> = own.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        Some(bytes)
    }

    fn text(&mut self) -> String {
        match self.string() {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => "(null)".to_owned(),
        }
    }
}

/// A failed `assert`, as the vendor's library words it.
fn failure(text: &mut String, words: &mut Words<'_>) {
    let line = words.word();
    let [bx, by, bz, tx, ty, tz] = std::array::from_fn(|_| words.word());
    let (message, file, function) = (words.text(), words.text(), words.text());
    let _ = writeln!(
        text,
        "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed."
    );
}

/// What stands between `%` and the letter.
#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    bits: u32,
}

fn print(text: &mut String, words: &mut Words<'_>) {
    let format = words.string().unwrap_or_default();
    let mut out = Vec::new();
    let mut bytes = format.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut spec = Spec {
            bits: 32,
            ..Spec::default()
        };
        let mut in_precision = false;
        for byte in bytes.by_ref() {
            match byte {
                b'*' => {
                    let value = words.word().cast_signed();
                    let size = (value.unsigned_abs() as usize).min(WIDEST);
                    match (in_precision, value < 0) {
                        (true, true) => spec.precision = None,
                        (true, false) => spec.precision = Some(size),
                        (false, left) => (spec.width, spec.left) = (size, spec.left || left),
                    }
                }
                b'.' => (in_precision, spec.precision) = (true, Some(0)),
                b'0' if !in_precision && spec.width == 0 => spec.zeros = true,
                b'0'..=b'9' => {
                    let digit = usize::from(byte - b'0');
                    let number = match &mut spec.precision {
                        Some(precision) if in_precision => precision,
                        _ => &mut spec.width,
                    };
                    *number = (*number * 10 + digit).min(WIDEST);
                }
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                b'h' => spec.bits /= 2,
                b'l' | b'j' | b'z' | b't' => spec.bits = 64,
                letter => {
                    spec.convert(letter, words, &mut out);
                    break;
                }
            }
        }
    }
    text.push_str(&String::from_utf8_lossy(&out));
}

impl Spec {
    fn convert(&self, letter: u8, words: &mut Words<'_>, out: &mut Vec<u8>) {
        let mut whole = || {
            if self.bits == 64 {
                words.wide()
            } else {
                u64::from(words.word())
            }
        };
        match letter {
            b'%' => out.push(b'%'),
            b'd' | b'i' => {
                let value = whole();
                let value = match self.bits {
                    64 => value.cast_signed(),
                    16 => i64::from((value as u16).cast_signed()),
                    8 => i64::from((value as u8).cast_signed()),
                    _ => i64::from((value as u32).cast_signed()),
                };
                self.number(
                    self.sign(value < 0),
                    self.digits(value.unsigned_abs().to_string()),
                    out,
                );
            }
            b'u' | b'o' | b'x' | b'X' => {
                let value = whole();
                let value = match self.bits {
                    16 => value & 0xffff,
                    8 => value & 0xff,
                    _ => value,
                };
                let (prefix, digits) = match letter {
                    b'u' => ("", value.to_string()),
                    b'o' if self.alternate && value != 0 => ("0", format!("{value:o}")),
                    b'o' => ("", format!("{value:o}")),
                    b'x' => ("0x", format!("{value:x}")),
                    _ => ("0X", format!("{value:X}")),
                };
                let hex = letter.eq_ignore_ascii_case(&b'x');
                let prefix = if hex && (!self.alternate || value == 0) {
                    ""
                } else {
                    prefix
                };
                self.number(prefix, self.digits(digits), out);
            }
            b'c' => {
                let value = whole();
                self.pad("", &[value as u8], false, out);
            }
            b's' => {
                let mut bytes = words.string().unwrap_or_else(|| b"(null)".to_vec());
                bytes.truncate(self.precision.unwrap_or(usize::MAX));
                self.pad("", &bytes, false, out);
            }
            b'p' => {
                let value = words.wide();
                self.pad("", format!("{value:#x}").as_bytes(), false, out);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(words.wide());
                let mut digits = if value.is_nan() {
                    "nan".to_owned()
                } else if value.is_infinite() {
                    "inf".to_owned()
                } else {
                    self.real(letter.to_ascii_lowercase(), value.abs())
                };
                if letter.is_ascii_uppercase() {
                    digits.make_ascii_uppercase();
                }
                let sign = self.sign(value.is_sign_negative() && !value.is_nan());
                self.pad(
                    sign,
                    digits.as_bytes(),
                    self.zeros && value.is_finite(),
                    out,
                );
            }
            // What the kernel took for no conversion either.
            other => out.push(other),
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    /// As many digits as the precision asks for.
    fn digits(&self, digits: String) -> String {
        match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        }
    }

    fn number(&self, sign: &str, digits: String, out: &mut Vec<u8>) {
        let zeros = self.zeros && self.precision.is_none();
        self.pad(sign, digits.as_bytes(), zeros, out);
    }

    fn pad(&self, sign: &str, body: &[u8], zeros: bool, out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(sign.len() + body.len());
        let fill = |byte, out: &mut Vec<u8>| out.extend(std::iter::repeat_n(byte, missing));
        if !self.left && !zeros {
            fill(b' ', out);
        }
        out.extend(sign.as_bytes());
        if !self.left && zeros {
            fill(b'0', out);
        }
        out.extend(body);
        if self.left {
            fill(b' ', out);
        }
    }

    /// A number that is finite and not negative.
    fn real(&self, letter: u8, value: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let point = |text: String| {
            if self.alternate && !text.contains('.') {
                text + "."
            } else {
                text
            }
        };
        match letter {
            b'f' => point(format!("{value:.precision$}")),
            b'e' => exponential(value, precision),
            b'a' => hexadecimal(value, self.precision),
            _ => {
                let precision = precision.max(1);
                let text = exponential(value, precision - 1);
                let exponent = text
                    .split_once('e')
                    .and_then(|(_, exponent)| exponent.parse::<i32>().ok())
                    .unwrap_or(0);
                let fixed = usize::try_from(precision as i32 - 1 - exponent)
                    .ok()
                    .filter(|_| exponent >= -4);
                let text = match fixed {
                    Some(decimals) => format!("{value:.decimals$}"),
                    None => text,
                };
                if self.alternate {
                    return point(text);
                }
                let (digits, rest) = match text.split_once('e') {
                    Some((digits, rest)) => (digits, format!("e{rest}")),
                    None => (text.as_str(), String::new()),
                };
                let digits = if digits.contains('.') {
                    digits.trim_end_matches('0').trim_end_matches('.')
                } else {
                    digits
                };
                format!("{digits}{rest}")
            }
        }
    }
}

/// `1.5e+02`: a sign and two digits of exponent at least.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// `0x1.8p+3`, with all digits unless a precision asks for fewer, which cuts off.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (lead, exponent) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, exponent - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = match precision {
        Some(precision) => digits.get(..precision.min(13)).unwrap_or(&digits),
        None => digits.trim_end_matches('0'),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::records;

    fn string(words: &mut Vec<u32>, text: &str) {
        words.push(text.len() as u32);
        for chunk in text.as_bytes().chunks(4) {
            let mut bytes = [0; 4];
            bytes[..chunk.len()].copy_from_slice(chunk);
            words.push(u32::from_le_bytes(bytes));
        }
    }

    fn printed(format: &str, arguments: &[u32]) -> String {
        let mut words = vec![0, super::PRINT];
        string(&mut words, format);
        words.extend(arguments);
        words[0] = words.len() as u32;
        records(&words)
    }

    fn real(format: &str, value: f64) -> String {
        let bits = value.to_bits();
        printed(format, &[bits as u32, (bits >> 32) as u32])
    }

    /// Expected results are those of glibc's `printf`.
    #[test]
    fn as_in_c() {
        assert_eq!(
            printed("%d|%5d|%-5d|%05d|%+d\n", &[7, 7, 7, 7, 7]),
            "7|    7|7    |00007|+7\n"
        );
        assert_eq!(
            printed("%d %i %u", &[!0, 1 << 31, !0]),
            "-1 -2147483648 4294967295"
        );
        assert_eq!(
            printed("%x %X %#x %o %#o", &[255, 255, 255, 8, 8]),
            "ff FF 0xff 10 010"
        );
        assert_eq!(printed("%ld %lx", &[0, 1, 0, 1]), "4294967296 100000000");
        assert_eq!(
            printed("%hd %hhd %hhu", &[0xffff, 0x80, 0x1ff]),
            "-1 -128 255"
        );
        assert_eq!(printed("%.3d|%6.3d|%.0d|", &[5, 5, 0]), "005|   005||");
        assert_eq!(
            printed("%*d|%-*d|%.*d", &[4, 1, 4, 2, 2, 3]),
            "   1|2   |03"
        );
        assert_eq!(printed("100%% %c%c", &[65, 66]), "100% AB");
        assert_eq!(printed("%p", &[0x1000, 0x7f]), "0x7f00001000");
        assert_eq!(real("%f", 1.5), "1.500000");
        assert_eq!(real("%.2f", -2.675), "-2.67");
        assert_eq!(real("%8.1f|", 2.25), "     2.2|");
        assert_eq!(real("%08.1f", -2.75), "-00002.8");
        assert_eq!(real("%e", 150.0), "1.500000e+02");
        assert_eq!(real("%.0E", 1e-300), "1E-300");
        assert_eq!(real("%g", 100_000.0), "100000");
        assert_eq!(real("%g", 1e6), "1e+06");
        assert_eq!(real("%g", 0.0001), "0.0001");
        assert_eq!(real("%g", 0.00001234), "1.234e-05");
        assert_eq!(real("%.3g", 1234.5), "1.23e+03");
        assert_eq!(real("%g", 0.0), "0");
        assert_eq!(real("%a", 12.0), "0x1.8p+3");
        assert_eq!(real("%f %F", f64::INFINITY).split(' ').next(), Some("inf"));
        assert_eq!(real("%5g|", f64::NAN), "  nan|");
    }

    #[test]
    fn strings() {
        let mut words = vec![0, super::PRINT];
        string(&mut words, "<%s> <%6s> <%.2s> <%s>");
        string(&mut words, "abcde");
        string(&mut words, "ab");
        string(&mut words, "abcde");
        words.push(super::NULL);
        words[0] = words.len() as u32;
        let once = "<abcde> <    ab> <ab> <(null)>";
        assert_eq!(records(&words), once);
        // A second record, then words that no record took.
        let twice = [words.as_slice(), &words, &[0, 5, 6]].concat();
        assert_eq!(records(&twice), format!("{once}{once}"));
    }

    #[test]
    fn any_words_make_some_text() {
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut words: Vec<u32> = (0..24)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 33) as u32
                })
                .collect();
            words[0] %= 26;
            words[1] = 1 + words[1] % 2;
            words[2] %= 40;
            words[3] = u32::from_le_bytes(*b"%*.*");
            records(&words);
        }
        assert_eq!(records(&[]), "");
        assert_eq!(records(&[u32::MAX, 1]), "");
    }
}
