//! IPMI DCMI "Get Power Reading": what a BMC says the machine draws.
//!
//! Source: Data Center Manageability Interface 1.5, section 6.6.1, and IPMI 2.0 section 5.2 (completion codes). Request:
//! net function 2Ch (group extension), command 02h, data `DC 01 00 00` (group DCMI, system power statistics). Answer:
//! completion code, `DC`, watts now, least, most and mean (16 bits each, little end first), BMC time (32 bits), period
//! in ms (32 bits), state (bit 6: measuring). A BMC without DCMI answers C1h; many boards do.
//!
//! Traps: the number is whole watts, averaged by the BMC over seconds to a minute, so a window below a minute is mostly
//! its past. With bit 6 clear the watts are not being measured, whatever they say.

/// The net function.
pub const NET_FUNCTION: u8 = 0x2c;
/// The command.
pub const COMMAND: u8 = 0x02;
/// The request's data.
pub const REQUEST: [u8; 4] = [0xdc, 0x01, 0x00, 0x00];
/// DCMI's group extension id, the first byte of its answers.
const GROUP: u8 = 0xdc;
/// Completion code and 18 bytes.
const LENGTH: usize = 19;

/// What the BMC said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerReading {
    /// Now.
    pub now_w: u16,
    /// Least in the period.
    pub min_w: u16,
    /// Most in the period.
    pub max_w: u16,
    /// Mean of the period.
    pub mean_w: u16,
    /// The BMC's clock, seconds since 1970.
    pub bmc_at_s: u32,
    /// Over which the statistics are taken.
    pub period_ns: u64,
}

/// Decodes an answer, completion code first.
pub fn decode(answer: &[u8]) -> Result<PowerReading, String> {
    let code = *answer.first().ok_or("the BMC's answer is empty")?;
    if code != 0 {
        return Err(format!("the BMC refused DCMI Get Power Reading: {}", completion(code)));
    }
    if answer.len() < LENGTH {
        return Err(format!("the BMC's answer has {} bytes instead of {LENGTH}", answer.len()));
    }
    if answer[1] != GROUP {
        return Err(format!("the BMC's answer is not of DCMI (group {:02x}h)", answer[1]));
    }
    if answer[18] & 0x40 == 0 {
        return Err("the BMC says that it is not measuring power".into());
    }
    let half = |at: usize| u16::from_le_bytes([answer[at], answer[at + 1]]);
    let word = |at: usize| u32::from_le_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
    Ok(PowerReading {
        now_w: half(2),
        min_w: half(4),
        max_w: half(6),
        mean_w: half(8),
        bmc_at_s: word(10),
        period_ns: u64::from(word(14)) * 1_000_000,
    })
}

/// A completion code in words.
fn completion(code: u8) -> String {
    let words = match code {
        0xc0 => "busy",
        0xc1 => "it does not know the command, so it has no DCMI",
        0xc2 => "not valid for this LUN",
        0xc3 => "timeout inside the BMC",
        0xc7 | 0xc8 => "wrong length",
        0xc9 | 0xcc => "it has no power statistics",
        0xce | 0xcf => "it could not answer",
        0xd3 => "destination unavailable",
        0xd4 => "not enough privilege",
        0xd5 | 0xd6 => "not in its present state",
        _ => "unspecified",
    };
    format!("{words} (completion code {code:02x}h)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the specification lays it out: 212 W now, 198 to 340, mean 215, in the last second.
    const ANSWER: [u8; 19] = [0, 0xdc, 212, 0, 198, 0, 0x54, 1, 215, 0, 0x10, 0x2f, 0x86, 0x65, 0xe8, 3, 0, 0, 0x40];

    #[test]
    fn an_answer_is_decoded() {
        let reading = decode(&ANSWER).unwrap();
        assert_eq!((reading.now_w, reading.min_w, reading.max_w, reading.mean_w), (212, 198, 340, 215));
        assert_eq!((reading.bmc_at_s, reading.period_ns), (0x6586_2f10, 1_000_000_000));
    }

    #[test]
    fn refusals_say_what_they_mean() {
        assert!(decode(&[0xc1]).unwrap_err().contains("no DCMI (completion code c1h)"));
        for code in 1..=255u8 {
            assert!(decode(&[code, 0xdc]).unwrap_err().contains("completion code"));
        }
        assert!(decode(&[]).is_err());
        for length in 1..ANSWER.len() {
            assert!(decode(&ANSWER[..length]).unwrap_err().contains("bytes instead of 19"));
        }
        let mut other = ANSWER;
        other[1] = 0x52;
        assert!(decode(&other).unwrap_err().contains("not of DCMI"));
        let mut still = ANSWER;
        still[18] = 0;
        assert!(decode(&still).unwrap_err().contains("not measuring"));
    }
}
