//! Texts of many nearly equal blocks (`/proc/cpuinfo`: one per CPU), written once and then as differences.
//!
//! Part of the `.host` format, see [`super::host_file`]; its tests stand there, over whole files.

/// As large as a live source reads.
const MAX_UNBLOCKED_BYTES: usize = 16 << 20;
/// Smaller texts gain nothing.
const MIN_BLOCKS_BYTES: usize = 4096;

/// /proc/cpuinfo is one block per CPU that differ in three lines of thirty: a line equal to the one in the same place of
/// the block before is only counted. None where it does not pay, or where a line could be taken for a count.
pub(super) fn blocks(text: &str) -> Option<Vec<String>> {
    let body = text.strip_suffix('\n')?;
    if text.len() < MIN_BLOCKS_BYTES || body.starts_with('^') || body.contains("\n^") {
        return None;
    }
    let (mut out, mut n_same, mut before, mut block): (Vec<String>, usize, Vec<&str>, Vec<&str>) = Default::default();
    let flush = |out: &mut Vec<String>, n_same: &mut usize| {
        if *n_same > 0 {
            out.push(format!("^{n_same}"));
        }
        *n_same = 0;
    };
    for line in body.split('\n') {
        if before.get(block.len()) == Some(&line) {
            n_same += 1;
        } else {
            flush(&mut out, &mut n_same);
            out.push(line.to_string());
        }
        block.push(line);
        if line.is_empty() {
            flush(&mut out, &mut n_same);
            before = std::mem::take(&mut block);
        }
    }
    flush(&mut out, &mut n_same);
    let is_shorter = out.iter().map(|l| l.len() + 2).sum::<usize>() < text.len() / 2;
    is_shorter.then_some(out)
}

/// The text again, of at most so many bytes; an error in words when the lines are not what [`blocks`] writes.
pub(super) fn unblock(lines: &[&str], max_bytes: usize) -> Result<String, String> {
    let (mut out, mut before, mut block): (String, Vec<&str>, Vec<&str>) = Default::default();
    for line in lines {
        let copied: Vec<&str> = match line.strip_prefix('^') {
            None => vec![line],
            Some(count) => {
                let n: usize = count.parse().map_err(|_| "^ wants a number of lines")?;
                let end = block.len().checked_add(n).ok_or("too many lines")?;
                before.get(block.len()..end).ok_or("the block before has fewer lines")?.to_vec()
            }
        };
        for text in copied {
            out.push_str(text);
            out.push('\n');
            block.push(text);
            if text.is_empty() {
                before = std::mem::take(&mut block);
            }
        }
        if out.len() > MAX_UNBLOCKED_BYTES.min(max_bytes) {
            return Err("blocks larger than any kernel file".into());
        }
    }
    Ok(out)
}
