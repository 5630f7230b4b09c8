//! Which socket and channel a memory slot belongs to, guessed from its name.
//!
//! SMBIOS has no field for it; makers print it into two free texts: `P0_DIMM_A1`, `CPU1_DIMM_B2`, `P1-DIMMA1`, `PROC 1
//! DIMM 3`, `P0 CHANNEL A`, `_Node0_Channel1_Dimm0`, `ChannelA-DIMM0`. Socket and channel are kept as the maker writes
//! them, because some count from 0 and some from 1. What is not recognised is none, never a guess of 0. Dell's bare
//! `A1` … `B12` is the exception: there the letter is the socket and the number a slot whose channel depends on the board.
//!
//! Dell documents that for some boards ([`poweredge_channels`]): sockets are numbered through all channels, then through
//! them again, so slot n is on channel (n - 1) modulo the channels. 14th generation, 12 slots per processor, six channels:
//! PowerEdge R740xd, T640 and XC940 manuals, "Memory channels" ("Channel 0: slots A1 and A7"). 15th and 16th generation on
//! Intel, 16 slots, eight channels: XC760 manual, population order A1 … A8 (the first socket of each channel), then A9 … A16.
//! Boards with fewer slots are irregular (R740xd2: ten, R440), and AMD's have four figures in their names: not told.
//!
//! HPE prints `PROC 1 DIMM 3` and no channel anywhere. Which slots share one differs between generations (on the DL380 G6
//! slots 3, 6 and 9; later boards pair neighbours), and no table could be found to cite for Gen10 and later: not told.

/// (socket, channel) as the maker names them.
pub(super) fn place(slot: &str, bank: &str, is_poweredge: bool) -> (Option<String>, Option<String>) {
    let slot_words = words(slot);
    if is_poweredge {
        if let Some((letter, _)) = poweredge_slot(&slot_words) {
            return (Some(letter), None);
        }
    }
    let bank_words = words(bank);
    let socket = socket(&slot_words).or_else(|| socket(&bank_words));
    let channel = channel(slot, &slot_words).or_else(|| channel(bank, &bank_words));
    (socket, channel)
}

/// Channels per processor of a PowerEdge of that name with so many slots per processor, where Dell documents them.
fn poweredge_channels(product: &str, n_slots: u32) -> Option<u32> {
    let model =
        product.split_whitespace().find(|word| word.starts_with(['R', 'T', 'C', 'M', 'X']) && word.len() >= 4)?;
    let figures: Vec<u32> = model.chars().skip(1).map_while(|c| c.to_digit(10)).collect();
    // The second of three figures is the generation: 740 is of the 14th.
    match (&figures[..], n_slots) {
        ([_, 4, _], 12) => Some(6),
        ([_, 5 | 6, _], 16) => Some(8),
        _ => None,
    }
}

/// Processor and number of `A1`, also of `DIMM.Socket.A1`.
fn poweredge_slot(words: &[String]) -> Option<(String, String)> {
    let [front @ .., letter, number] = words else { return None };
    let is_plain = front.iter().all(|word| matches!(word.as_str(), "DIMM" | "SOCKET"));
    (is_plain && is_letter(letter) && is_number(number)).then(|| (letter.clone(), number.clone()))
}

/// The channels of a PowerEdge's slots, one for each name; none where not all slots of a processor are listed, or the board is
/// not a documented one.
pub(super) fn poweredge(product: &str, slots: &[Option<&str>]) -> Vec<Option<String>> {
    let number = |slot: &Option<&str>| -> Option<(String, u32)> {
        let (letter, number) = poweredge_slot(&words(slot.unwrap_or_default()))?;
        Some((letter, number.parse().ok()?))
    };
    let Some(places) = slots.iter().map(number).collect::<Option<Vec<_>>>() else { return vec![None; slots.len()] };
    let channel = |(letter, slot): &(String, u32)| {
        let mut of_socket: Vec<u32> = places.iter().filter(|(l, _)| l == letter).map(|(_, n)| *n).collect();
        of_socket.sort_unstable();
        let n_slots = u32::try_from(of_socket.len()).ok()?;
        let is_whole = of_socket.iter().copied().eq(1..=n_slots);
        let n_channels = poweredge_channels(product, n_slots).filter(|_| is_whole)?;
        Some(((slot - 1) % n_channels).to_string())
    };
    places.iter().map(channel).collect()
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
        assert_eq!(place("DIMM.Socket.A1", "", true), (Some("A".into()), None));
    }
    fn channels(product: &str, sockets: &[&str], numbers: std::ops::Range<u32>) -> String {
        let names: Vec<String> = sockets.iter().flat_map(|s| numbers.clone().map(move |n| format!("{s}{n}"))).collect();
        let names: Vec<Option<&str>> = names.iter().map(|n| Some(n.as_str())).collect();
        poweredge(product, &names).into_iter().map(|c| c.unwrap_or("-".into())).collect()
    }

    #[test]
    fn documented_boards_of_dell_have_channels_and_others_have_none() {
        assert_eq!(channels("PowerEdge R740xd", &["A", "B"], 1..13), "012345012345012345012345");
        assert_eq!(channels("PowerEdge R640", &["DIMM.Socket.A"], 1..13), "012345012345");
        assert_eq!(channels("PowerEdge R760", &["A"], 1..17), "0123456701234567");
        for (product, numbers) in [
            ("PowerEdge R740xd2", 1..11),
            ("PowerEdge R7525", 1..17),
            ("PowerEdge R730", 1..13),
            ("PowerEdge", 1..13),
            ("PowerEdge R740", 0..12),
            ("PowerEdge R740", 2..13),
        ] {
            assert!(channels(product, &["A"], numbers.clone()).chars().all(|c| c == '-'), "{product} {numbers:?}");
        }
        assert_eq!(poweredge("PowerEdge R740", &[Some("A1"), None]), [None, None]);
    }
}
