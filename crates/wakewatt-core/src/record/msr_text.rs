//! `msr.txt` as it lies beside recorded sysroots: `<hex address>:<cpu>|<hex value> <cpu>|<hex value> …` per line.

use crate::source::Tree;

/// Adds the registers of an `msr.txt` to a tree; lines that are not of the form are returned as text, not dropped.
pub fn read_into(tree: &mut Tree, text: &str) -> Vec<String> {
    let mut strange = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let Some((address, pairs)) =
            line.split_once(':').and_then(|(a, p)| Some((u32::from_str_radix(a.trim(), 16).ok()?, p)))
        else {
            strange.push(line.chars().take(60).collect());
            continue;
        };
        for pair in pairs.split_whitespace() {
            match pair.split_once('|').and_then(|(c, v)| Some((c.parse().ok()?, u64::from_str_radix(v, 16).ok()?))) {
                Some((cpu, value)) => {
                    tree.msrs.insert((address, cpu), Ok(value));
                }
                None => strange.push(pair.chars().take(60).collect()),
            }
        }
    }
    strange
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn reads_values_and_names_what_it_could_not() {
        let mut tree = Tree::default();
        let strange = read_into(&mut tree, "# format\n1b0:0|7 1|f\nzz:0|1\ne2:0|q\n");
        assert_eq!((tree.msr(1, 0x1b0).unwrap(), tree.msr(0, 0x1b0).unwrap()), (15, 7));
        assert_eq!(strange, ["zz:0|1", "0|q"]);
    }
}
