//! `x86_energy_perf_policy`: bias and hardware-managed levels, CPU by CPU.
//!
//! `cpu0: EPB 6` is the bias, `cpu0: HWP_REQ: min 8 max 39 des 0 epp 128 (window 0x0 (0*10^0us)) use_pkg 0` is IA32_HWP_REQUEST
//! field by field, from which its register is put together again; `HWP_CAP` likewise. Without privilege the tool prints less.

use crate::facts::{CPU, cpu_number};
use crate::plain::{hex, whole};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format =
    Format { id: "x86-energy-perf-policy", title: "x86_energy_perf_policy", detect, read };

fn of_cpu(line: &str) -> Option<(u32, &str)> {
    let (cpu, rest) = line.trim().strip_prefix("cpu")?.split_once(':')?;
    Some((cpu_number(cpu)?, rest.trim()))
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "x86_energy_perf_policy", |line| {
        of_cpu(line).is_some_and(|(_, rest)| rest.starts_with("EPB ") || rest.starts_with("HWP_"))
    })
}

/// The number behind a word.
fn behind(text: &str, word: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    words.find(|w| *w == word)?;
    let value = words.next()?.trim_matches(['(', ')', ',']);
    hex(value).or_else(|| whole(value))
}

fn read(reading: &mut Reading<'_>) {
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        let Some((cpu, rest)) = of_cpu(text) else {
            if text.starts_with("pkg") && text.contains("HWP_REQ_PKG") {
                reading.unused(at);
            }
            continue;
        };
        let byte = |word: &str| behind(rest, word).filter(|n| *n < 256);
        if let Some(bias) = rest
            .strip_prefix("EPB ")
            .or_else(|| rest.strip_prefix("EPB: "))
            .and_then(|r| whole(r.split_whitespace().next()?))
        {
            reading.put(at, &format!("{CPU}/cpu{cpu}/power/energy_perf_bias"), &bias.to_string());
        } else if rest.starts_with("HWP_REQ:") {
            match (byte("min"), byte("max"), byte("des"), byte("epp")) {
                (Some(min), Some(max), Some(desired), Some(preference)) => {
                    let window =
                        behind(rest, "(window").or_else(|| behind(rest, "window")).filter(|w| *w < 1024).unwrap_or(0);
                    let of_package = behind(rest, "use_pkg").unwrap_or(0) & 1;
                    let bits = min | max << 8 | desired << 16 | preference << 24 | window << 32 | of_package << 42;
                    reading.put_msr(at, 0x774, cpu, bits);
                }
                _ => reading.refuse(at, "no min, max, des and epp below 256"),
            }
        } else if rest.starts_with("HWP_CAP:") {
            match (byte("low"), byte("eff"), byte("guar"), byte("high")) {
                (Some(low), Some(efficient), Some(guaranteed), Some(high)) => {
                    reading.put_msr(at, 0x771, cpu, high | guaranteed << 8 | efficient << 16 | low << 24);
                }
                _ => reading.refuse(at, "no low, eff, guar and high below 256"),
            }
        } else if rest.starts_with("EPB") || rest.starts_with("HWP_") {
            reading.refuse(at, "no number");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn bias_and_request() {
        let text = "cpu0: EPB 6\ncpu0: HWP_REQ: min 8 max 39 des 0 epp 128 (window 0x0 (0*10^0us)) use_pkg 0\ncpu0: HWP_CAP: low 1 eff 8 guar 24 high 39\ncpu1: EPB x\n";
        let found = read(text);
        assert_eq!(formats(&found), ["x86-energy-perf-policy"]);
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpu0/power/energy_perf_bias").as_deref(), Some("6"));
        assert_eq!(found.facts.tree.msrs[&(0x774, 0)], Ok(0x8000_2708));
        assert_eq!(found.facts.tree.msrs[&(0x771, 0)], Ok(0x0108_1827));
        assert_eq!(found.document.files[0].n_not_understood, 1);
    }
}
