//! Who woke whom, drawn: time lost by waker, then by whom it woke, down to the idle state that was left.
//!
//! An icicle: each frame is as long as the time lost under it, its parts stand beside it. On a wide page time goes from left to right and the chain
//! downwards; on a phone time goes downwards, because a label needs the width. Frames of a chain have the colour of the kind of waker. What is too
//! small for a label is drawn without one, what is smaller than a pixel is one frame with its like; the table beside has words for the heaviest.

use super::super::charts::WIDTHS;
use super::super::charts::svg::{Anchor, Svg, text_width};
use super::super::data::{Cell, Data, Show};
use super::super::figure::Figure;
use super::super::table::{Table, heads};
use super::super::words;
use super::names::{N_PROCESSES, clean};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::chains::{Chain, Chains};
use wakewatt_core::samples::wakes::WakerKind;
use wakewatt_words::{say, word};

/// One level of a chain on the wide page, and on a phone from top to bottom.
const ROW: f64 = 30.0;
const TALL: f64 = 560.0;
/// Of labels, their lines, and how many of these a frame has on a phone.
const SIZE: f64 = 12.0;
const LINE: f64 = 14.0;
const MOST_LINES: f64 = 3.0;
/// Smaller is not seen.
const LEAST: f64 = 1.0;

/// What was lost under one name; parts with the heaviest first.
#[derive(Debug, Default)]
struct Frame {
    name: String,
    style: usize,
    total_ns: u64,
    parts: Vec<Frame>,
}

impl Frame {
    fn of(chains: &Chains) -> Frame {
        let mut all = Frame::default();
        for row in &chains.rows {
            all.add(&row.frames(), style(row), row.total_ns);
        }
        all.sort();
        all
    }

    fn add(&mut self, names: &[String], style: usize, ns: u64) {
        self.total_ns += ns;
        let Some((name, rest)) = names.split_first() else { return };
        let at = self.parts.iter().position(|part| part.name == *name && part.style == style);
        let at = at.unwrap_or_else(|| {
            self.parts.push(Frame { name: name.clone(), style, ..Frame::default() });
            self.parts.len() - 1
        });
        self.parts[at].add(rest, style, ns);
    }

    fn sort(&mut self) {
        self.parts.arrange_by_key(|part| std::cmp::Reverse(part.total_ns));
        self.parts.iter_mut().for_each(Frame::sort);
    }
}

fn style(row: &Chain) -> usize {
    match row.kind {
        _ if row.is_rest => 0,
        WakerKind::Task => 1,
        WakerKind::Softirq => 2,
        WakerKind::Interrupt => 3,
        WakerKind::Timer => 4,
        WakerKind::Unknown => 5,
    }
}

/// The picture; none where nothing was lost.
pub(super) fn figure(chains: &Chains) -> Option<Figure> {
    let all = Frame::of(chains);
    if all.total_ns == 0 {
        return None;
    }
    let title = word!("Who woke whom out of idle");
    let one = |(class, width): &(&str, f64)| {
        let is_wide = *class == "wide";
        let mut svg = Svg::new(*width, if is_wide { 4.0 * ROW } else { TALL });
        let along = if is_wide { *width } else { TALL };
        draw(&mut svg, &all, (0.0, along), 0, &Way { is_wide, thickness: if is_wide { ROW } else { width / 4.0 } });
        let heaviest =
            all.parts.iter().take(3).map(|part| format!("{}: {}", part.name, words::ns(part.total_ns as f64)));
        svg.finish(&format!("trace-stacks-{class}"), class, title, &heaviest.collect::<Vec<_>>().join("; "))
    };
    Some(Figure {
        id: "trace-stacks".into(),
        title: title.into(),
        table: None,
        csv: data(chains).csv(),
        svg: WIDTHS.iter().map(one).collect(),
        caption: say!(
            "{} of wake-up latency with the exit inside, from waker to woken: in whose name the waking happened (a process, a timer, an interrupt), the \
             cgroup and the process that was woken, the idle state its CPU was leaving. Length is time lost; a colour is a kind of waker.",
            words::ns(all.total_ns as f64)
        ),
        label: "measured",
    })
}

/// Where a chain goes.
struct Way {
    is_wide: bool,
    thickness: f64,
}

/// Everything below a frame, from `at.0` to `at.1`.
fn draw(svg: &mut Svg, frame: &Frame, at: (f64, f64), level: usize, way: &Way) {
    let mut from = at.0;
    for (n_drawn, part) in frame.parts.iter().enumerate() {
        let to = from + (at.1 - at.0) * part.total_ns as f64 / frame.total_ns.max(1) as f64;
        if to - from < LEAST {
            // What is left is no heavier: one frame for all of it.
            let more = say!("{} more", words::count((frame.parts.len() - n_drawn) as u64));
            return block(svg, "band", &more, (from, at.1), level, way);
        }
        block(svg, &format!("fill a{}", part.style), &part.name, (from, to), level, way);
        draw(svg, part, (from, to), level + 1, way);
        from = to;
    }
}

/// A frame with as much of its name as there is room for.
fn block(svg: &mut Svg, class: &str, name: &str, (from, to): (f64, f64), level: usize, way: &Way) {
    let across = level as f64 * way.thickness;
    let (corner, size) = match way.is_wide {
        true => ((from, across), (to - from, way.thickness)),
        false => ((across, from), (way.thickness, to - from)),
    };
    svg.rect(class, corner, (size.0 - 1.0, size.1 - 1.0));
    // A few at most.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let n_lines = ((size.1 - 2.0) / LINE).clamp(0.0, if way.is_wide { 1.0 } else { MOST_LINES }) as usize;
    let lines = fitted(name, size.0 - 8.0, n_lines);
    let first = if way.is_wide { size.1 / 2.0 + 4.0 } else { LINE.min(size.1 / 2.0 + 4.0) };
    for (at, line) in lines.iter().enumerate() {
        svg.text("cell", Anchor::Start, (corner.0 + 4.0, corner.1 + first + LINE * at as f64), line);
    }
}

/// As much of a name as so many lines have room for; of a path its end. Nothing where that would tell nothing.
fn fitted(name: &str, width: f64, n_lines: usize) -> Vec<String> {
    let name: Vec<char> = clean(name).chars().collect();
    // A few hundred at most.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let room = (width / text_width("x", SIZE)).max(0.0) as usize;
    let all = room * n_lines;
    if all == 0 || (name.len() > all && room < 4) {
        return Vec::new();
    }
    let shown: Vec<char> = match name.len() > all {
        false => name,
        true if name.first() == Some(&'/') => ['…'].into_iter().chain(name[name.len() + 1 - all..].to_vec()).collect(),
        true => name[..all - 1].iter().copied().chain(['…']).collect(),
    };
    shown.chunks(room).map(|line| line.iter().collect()).collect()
}

/// The heaviest in words.
pub(super) fn table(chains: &Chains) -> Table {
    let rows = chains.rows.iter().take(N_PROCESSES).map(|row| {
        let mut cells: Vec<String> = row.frames().iter().map(|frame| clean(frame)).collect();
        cells.extend([words::count(row.n), words::ns(row.total_ns as f64)]);
        cells
    });
    let more = chains.rows.len().saturating_sub(N_PROCESSES);
    let more = if more > 0 { say!(" ({more} more in --json and in the file of --stacks)") } else { String::new() };
    Table {
        caption: say!("Who woke whom out of idle: measured{more}"),
        heads: heads(&[
            word!("waker"),
            word!("cgroup woken"),
            word!("process woken"),
            word!("out of"),
            "n",
            word!("time lost"),
        ]),
        rows: rows.collect(),
        n_text_columns: 4,
    }
}

/// The drawn numbers.
fn data(chains: &Chains) -> Data {
    let text = |head: &'static str| (head, Show::Text);
    let mut data = Data::with(&[
        text(word!("waker")),
        text(word!("cgroup")),
        text(word!("process")),
        text(word!("idle state")),
        (word!("wake-ups"), Show::Count),
        (word!("time lost"), Show::Ns),
    ]);
    for row in &chains.rows {
        let mut cells: Vec<Cell> = row.frames().map(Cell::from).into();
        cells.extend([Cell::from(row.n as f64), Cell::from(row.total_ns as f64)]);
        data.rows.push(cells);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Label;

    const EVIL: &str = "</text><script>alert(1)</script>\u{1b}[31m;x";

    fn chain(kind: WakerKind, waker: &str, process: &str, total_ns: u64) -> Chain {
        let (waker, process) = (Some(waker.to_string()), Some(process.to_string()));
        let cgroup = Some("/system.slice/a-service-with-a-long-name.service".to_string());
        Chain { kind, waker, cgroup, process, state: "C6".into(), n: 3, total_ns, is_rest: false }
    }

    fn chains(rows: Vec<Chain>) -> Chains {
        Chains { rows, label: Label::Measured }
    }

    #[test]
    fn the_picture_fits_and_holds_no_foreign_markup() {
        let mut rows = vec![
            chain(WakerKind::Task, "nginx", "php-fpm", 900_000),
            chain(WakerKind::Timer, EVIL, EVIL, 300_000),
            chain(WakerKind::Softirq, "net_rx", "nginx", 200_000),
        ];
        rows.extend((0..3_000).map(|at| chain(WakerKind::Task, &format!("w{at}"), "x", 10)));
        let figure = figure(&chains(rows)).unwrap();
        let svg = &figure.svg;
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}') && !svg.contains("href") && !svg.contains("NaN"));
        assert!(
            svg.contains(">nginx</text>") && svg.contains("…a-service") || svg.contains("-name.service</text>"),
            "{svg}"
        );
        // Frames below a pixel are left out: the file stays small.
        assert!(svg.matches("<rect").count() < 100, "{}", svg.matches("<rect").count());
        let narrow = svg.split("class=\"chart narrow\"").nth(1).unwrap();
        for rect in narrow.split("<rect ").skip(1) {
            let number = |name: &str| -> f64 {
                let from = rect.split(&format!(" {name}=\"")).nth(1).unwrap();
                from.split('"').next().unwrap().parse().unwrap()
            };
            assert!(number("x") + number("width") <= 350.0 && number("y") + number("height") <= TALL + 0.1, "{rect}");
        }
        for text in narrow.split("<text ").skip(1) {
            let label = text.split('>').nth(1).unwrap().split('<').next().unwrap();
            let label = label.replace("&lt;", "<").replace("&gt;", ">");
            assert!(text_width(&label, SIZE) <= 350.0 / 4.0, "{label}");
        }
        assert!(super::figure(&chains(Vec::new())).is_none());
    }

    #[test]
    fn a_label_is_cut_where_it_tells_least() {
        assert_eq!(fitted("nginx", 100.0, 1), ["nginx"]);
        assert_eq!(fitted("/system.slice/nginx.service", 95.0, 1), ["…nginx.service"]);
        assert_eq!(fitted("timer hrtimer_wakeup", 70.0, 1), ["timer hrt…"]);
        assert_eq!(fitted("timer hrtimer_wakeup", 70.0, 3), ["timer hrti", "mer_wakeup"]);
        assert_eq!(fitted("x", 8.0, 1), ["x"]);
        assert!(fitted("nginx", 20.0, 1).is_empty() && fitted("nginx", 100.0, 0).is_empty());
    }
}
