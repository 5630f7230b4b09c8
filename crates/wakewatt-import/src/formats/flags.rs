//! A processor's list of flags in a text: whole, or cut at the edge of a screen, by a ticket, by hand?
//!
//! What is missing in a cut list is not missing in the processor, so a list that may be cut is marked
//! ([`CUT`]) and rules then cannot tell. Nothing at the edge itself shows it: lines of flags are the longest of all. But Linux lists x86
//! flags in the order of its table (arch/x86/include/asm/cpufeatures.h): a list that has any of the last words holds every flag
//! before them, those for power and latency among them. Without one of them it may be cut. Other architectures' lists are short.

use wakewatt_core::facts::cpuinfo::CUT;

/// Of the words 16 to 18 of the table, what every x86 server of the last ten years has one of.
const LATE: &[&str] = &[
    "pku",
    "ospke",
    "umip",
    "rdpid",
    "gfni",
    "vaes",
    "la57",
    "avx512_vnni",
    "avx512_bitalg",
    "overflow_recov",
    "succor",
    "smca",
    "fsrm",
    "md_clear",
    "serialize",
    "flush_l1d",
    "arch_capabilities",
];

/// The list as a kernel's file has it, with the mark behind it where it may be cut.
pub(super) fn marked(flags: &str) -> String {
    let mut words: Vec<&str> = flags.split_whitespace().filter(|word| !is_dots(word)).collect();
    let is_x86 = words.contains(&"fpu");
    let is_whole = words.iter().any(|word| LATE.contains(word));
    // Dots in the middle leave out what stood there.
    if flags.split_whitespace().any(is_dots) || (is_x86 && !is_whole) {
        words.push(CUT);
    }
    words.join(" ")
}

fn is_dots(word: &str) -> bool {
    word == CUT || word == "[…]" || (word.len() >= 2 && word.trim_matches(['[', ']']).bytes().all(|b| b == b'.'))
}

/// `/proc/cpuinfo` as somebody pasted it.
pub(super) fn marked_file(text: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((key, flags)) if key.trim_end() == "flags" => format!("{key}: {}\n", marked(flags)),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn only_a_list_with_its_last_words_is_whole() {
        assert_eq!(marked("fpu vme  hwp pku ospke"), "fpu vme hwp pku ospke");
        assert_eq!(marked("fpu vme de pse tsc ms"), "fpu vme de pse tsc ms …");
        assert_eq!(marked("fpu vme ... hwp md_clear"), "fpu vme hwp md_clear …");
        assert_eq!(marked("fp asimd evtstrm"), "fp asimd evtstrm", "Arm");
    }
}
