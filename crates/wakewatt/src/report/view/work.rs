//! What the CPUs got done while the machine did its own work: busy time and instructions per cycle, CPU by CPU.

use super::super::data::{Data, Show};
use super::super::words;
use super::section::Section;
use wakewatt_core::samples::work::WorkSample;
use wakewatt_words::{say, word};

/// The section; none if no CPU was counted.
pub(super) fn section(sample: &WorkSample, zero_at_ns: u64) -> Option<Section> {
    let columns = [
        (word!("CPU"), Show::Text),
        (word!("busy"), Show::Ratio),
        (word!("instructions per cycle"), Show::Number),
        (word!("cycles"), Show::Count),
        (word!("instructions"), Show::Count),
    ];
    let mut data = Data::with(&columns);
    for cpu in &sample.cpus {
        let (n_cycles, n_instructions) = (cpu.n_cycles as f64, cpu.n_instructions as f64);
        // A CPU without cycles was not counted, or never ran.
        let per_cycle = (cpu.n_cycles > 0).then(|| n_instructions / n_cycles);
        data.rows.push(vec![
            cpu.cpu.to_string().into(),
            cpu.busy_ratio.into(),
            per_cycle.into(),
            n_cycles.into(),
            n_instructions.into(),
        ]);
    }
    let mut out = Section::new(word!("What the CPUs got done"));
    let window = words::window(&sample.window, zero_at_ns);
    let busy = sample.cpus.iter().map(|c| c.busy_ratio).sum::<f64>() / sample.cpus.len().max(1) as f64;
    let of_all = sample.ipc_of_busy(0.0).map_or(word!("no CPU's cycles were counted").to_string(), |(ipc, n)| {
        say!("{} instructions per cycle of {} together", Show::Number.text(ipc), words::plural(n, word!("CPU")))
    });
    let said = say!("{} busy, {of_all}", words::percent(busy));
    out.lines.push(format!("{said} ({window})"));
    out.intro.push(say!(
        "As found, while the machine did its own work ({window}): {said}. A CPU that waits for memory is as busy as one that \
         computes; instructions per cycle tell them apart, as a hint, because code differs."
    ));
    out.folded.extend((!data.rows.is_empty()).then(|| data.table(say!("CPU by CPU: measured, {window}"))));
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Window;
    use wakewatt_core::samples::work::CpuWork;

    #[test]
    fn each_cpu_has_a_row_and_one_that_was_not_counted_has_no_quotient() {
        let cpu = |cpu, busy_ratio, n_cycles, n_instructions| CpuWork { cpu, busy_ratio, n_cycles, n_instructions };
        let cpus = vec![cpu(0, 0.5, 2_000_000, 1_000_000), cpu(1, 0.1, 0, 0)];
        let window = Window { start_at_ns: 1_000_000_000, end_at_ns: 2_000_000_000 };
        let section = section(&WorkSample { window, cpus }, 0).unwrap();
        let table = &section.folded[0];
        assert_eq!(table.rows[0][..3], ["0", "50 %", "0.5"].map(String::from));
        assert_eq!(table.rows[1][..3], ["1", "10 %", "–"].map(String::from));
        assert!(table.caption.contains("measured"), "{}", table.caption);
        assert!(section.lines[0].starts_with("30 % busy, 0.5 instructions per cycle of 1 CPU together (t+1.0 s"));
        assert!(super::section(&WorkSample { window, cpus: vec![] }, 0).is_none());
    }
}
