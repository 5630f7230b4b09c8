//! Which socket and channel a memory slot belongs to, guessed from its name.
//!
//! SMBIOS has no field for it; makers print it into two free texts: `P0_DIMM_A1`, `CPU1_DIMM_B2`, `P1-DIMMA1`, `PROC 1
//! DIMM 3`, `P0 CHANNEL A`, `_Node0_Channel1_Dimm0`, `ChannelA-DIMM0`. Socket and channel are kept as the maker writes
//! them, because some count from 0 and some from 1. What is not recognised is none, never a guess of 0. Dell's bare
//! `A1` … `B12` is the exception: there the letter is the socket and the number a slot whose channel depends on the board.

/// (socket, channel) as the maker names them.
pub(super) fn place(slot: &str, bank: &str, is_poweredge: bool) -> (Option<String>, Option<String>) {
    let slot_words = words(slot);
    if is_poweredge {
        if let [letter, number] = &slot_words[..] {
            if is_letter(letter) && is_number(number) {
                return (Some(letter.clone()), None);
            }
        }
    }
    let bank_words = words(bank);
    let socket = socket(&slot_words).or_else(|| socket(&bank_words));
    let channel = channel(slot, &slot_words).or_else(|| channel(bank, &bank_words));
    (socket, channel)
}

/// Runs of letters and runs of digits, in capitals; a channel letter glued to a known word is split off.
fn words(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in text.chars().map(|c| c.to_ascii_uppercase()) {
        let is_same_run =
            (c.is_ascii_alphabetic() && last.is_ascii_alphabetic()) || (c.is_ascii_digit() && last.is_ascii_digit());
        match all.last_mut() {
            Some(word) if is_same_run => word.push(c),
            _ if c.is_ascii_alphanumeric() => all.push(c.to_string()),
            _ => {}
        }
        last = c;
    }
    let split = |word: String| {
        let glued = ["DIMM", "CHANNEL"].iter().find_map(|front| Some((*front, word.strip_prefix(front)?)));
        match glued {
            Some((front, rest)) if rest.len() == 1 => vec![front.to_string(), rest.to_string()],
            _ => vec![word],
        }
    };
    all.into_iter().flat_map(split).collect()
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

fn is_letter(word: &str) -> bool {
    word.len() == 1 && word.chars().all(|c| c.is_ascii_alphabetic())
}

fn socket(words: &[String]) -> Option<String> {
    let after = |names: &[&str]| {
        words
            .windows(2)
            .find(|w| names.contains(&w[0].as_str()) && is_number(&w[1]))
            .map(|w| format!("{}{}", w[0], w[1]))
    };
    after(&["P", "CPU", "PROC", "PROCESSOR", "SOCKET"]).or_else(|| after(&["NODE"]))
}

fn channel(text: &str, words: &[String]) -> Option<String> {
    let named = words
        .windows(2)
        .find(|w| matches!(w[0].as_str(), "CHANNEL" | "CHAN" | "CH") && (is_letter(&w[1]) || is_number(&w[1])));
    if let Some(pair) = named {
        // Client chips count channels per memory controller.
        let controller = words.windows(2).find(|w| matches!(w[0].as_str(), "CONTROLLER" | "MC") && is_number(&w[1]));
        return Some(controller.map_or(pair[1].clone(), |c| format!("{}{}", c[1], pair[1])));
    }
    // A letter with the slot's number right behind it: `DIMM_A1`, `A1`. P is a processor, not a channel.
    let text = text.to_ascii_uppercase();
    let is_pair = |w: &[String]| is_letter(&w[0]) && w[0] != "P" && is_number(&w[1]) && text.contains(&w.concat());
    words.windows(2).find(|w| is_pair(w)).map(|w| w[0].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makers_print() {
        let check = |slot: &str, bank: &str| {
            let (socket, channel) = place(slot, bank, false);
            format!("{} {}", socket.as_deref().unwrap_or("-"), channel.as_deref().unwrap_or("-"))
        };
        for (slot, bank, expected) in [
            ("P0_DIMM_A1", "", "P0 A"),
            ("CPU1_DIMM_B2", "NODE 1", "CPU1 B"),
            ("P1-DIMMA1", "P0_Node0_Channel0_Dimm0", "P1 A"),
            ("PROC 1 DIMM 3", "", "PROC1 -"),
            ("DIMM 0", "P0 CHANNEL C", "P0 C"),
            ("DIMM1", "_Node1_Channel2_Dimm0", "NODE1 2"),
            ("DIMM_P1_I0", "BANK 0", "P1 I"),
            ("ChannelB-DIMM0", "BANK 2", "- B"),
            ("Controller1-ChannelA-DIMM0", "BANK 0", "- 1A"),
            ("A1", "", "- A"),
            ("DIMM 3", "BANK 3", "- -"),
            ("", "", "- -"),
            ("ünï ☃ 7", "Not Specified", "- -"),
        ] {
            assert_eq!(check(slot, bank), expected, "{slot} / {bank}");
        }
        assert_eq!(place("B12", "", true), (Some("B".into()), None));
    }
}
