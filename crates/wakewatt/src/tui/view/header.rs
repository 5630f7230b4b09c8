//! Head and foot of the screen: what is watched, what watching costs, the machine in six lines, the keys.

use super::{accent, alarm, dim, glyphs, keys, strong};
use crate::tui::state::{Panel, State};
use crate::tui::words::{self, count, percent, spelled};
use crate::view::width::{begin, padded, places, right};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use wakewatt_core::units::{LatencyLimit, show_ns};
use wakewatt_core::watch::{Rates, Reading, Sources, Why};
use wakewatt_words::{say, told, word};

/// Two lines: the name tag, and the mode with its cost.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let t = &state.title;
    let width = usize::from(area.width);
    // What is played may be of any day.
    let date = |wall_at_ns: u64| if state.play.is_some() { words::date(wall_at_ns) + " " } else { String::new() };
    let clock =
        state.rates.as_ref().map_or(String::new(), |r| date(r.wall_at_ns) + &words::clock(r.wall_at_ns) + " UTC");
    let mode = match (&state.play, state.is_paused) {
        (Some(play), _) => {
            format!(
                "{} {}/{} x{}",
                if play.is_running { word!("PLAY") } else { word!("STOP") },
                play.at + 1,
                play.n,
                play.speed
            )
        }
        (None, true) => word!("PAUSED").into(),
        (None, false) => say!("every {}", show_ns(state.interval_ns)),
    };
    let right = format!("{mode} · {clock} ");
    let room = width.saturating_sub(places(&right) + 1);
    // What does not fit is left out whole, the least important first.
    let mut left = format!(" wakewatt · {}", words::escaped(&t.host));
    for part in [say!("{} CPUs", t.n_cpus), words::escaped(&t.idle), format!("Linux {}", words::escaped(&t.kernel))] {
        if places(&left) + 3 + places(&part) <= room {
            left += &format!(" · {part}");
        }
    }
    let left = begin(&left, room).to_string();
    let style = if state.is_paused { alarm(state) } else { accent(state) };
    let gap = width.saturating_sub(places(&left) + places(&right));
    let first = Line::from(vec![Span::styled(left, strong()), Span::raw(" ".repeat(gap)), Span::styled(right, style)]);
    frame.render_widget(Paragraph::new(vec![first, cost(state)]), area);
}

fn cost(state: &State) -> Line<'static> {
    let Some(rates) = &state.rates else { return Line::styled(word!(" reading the first interval …"), dim(state)) };
    let c = &rates.cost;
    let what = match c.sources {
        Sources::Quiet => word!("quiet: wakes no other CPU").to_string(),
        _ => say!("{}: interrupts other CPUs {}x per interval", c.sources.word(), c.n_remote_interrupts),
    };
    let own = match (c.own_wakeups_per_s, c.own_cpu_ratio) {
        (Reading::Known(wakeups), Reading::Known(cpu)) => {
            say!(" · itself {} wakes/s, {} CPU", count(wakeups), percent(cpu))
        }
        _ => String::new(),
    };
    // What is wrong stands first, where a narrow screen cannot cut it off.
    let mut spans = vec![Span::raw(" ")];
    if let Some(recorded) = &state.recorded {
        spans.push(match &recorded.trouble {
            None => Span::styled(say!("recording {} · ", recorded.n), accent(state)),
            Some(_) => Span::styled(say!("RECORDING INCOMPLETE after {}", recorded.n), alarm(state)),
        });
        if recorded.trouble.is_some() {
            spans.push(Span::raw(" · "));
        }
    }
    if let Some(play) = &state.play {
        spans.push(Span::styled(format!("{} · ", words::escaped(&play.end)), accent_plain(state)));
    }
    spans.push(Span::styled(what + &own, dim(state)));
    Line::from(spans)
}

/// The machine.
pub(super) fn overview(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(rates) = &state.rates else { return };
    let width = usize::from(area.width);
    let half = width / 2;
    let spark = half.saturating_sub(24);
    let m = &rates.machine;
    let s = &m.summary;
    let per_s = |n: Reading<f64>| spelled(n, |n| format!("{}/s", count(n)));
    let graph = |series, top| Span::styled(glyphs::spark(state.look, series, spark, top), accent_plain(state));
    let pair = |left: Vec<Span<'static>>, right: Vec<Span<'static>>| {
        let used: usize = left.iter().map(Span::width).sum();
        let mut all = left;
        all.push(Span::raw(" ".repeat(half.saturating_sub(used))));
        all.extend(right);
        Line::from(all)
    };
    let named = |name: &'static str, value: String| {
        vec![
            Span::styled(format!(" {}", padded(name, 11)), dim(state)),
            Span::styled(format!("{} ", right(&value, 9)), strong()),
        ]
    };
    let with = |mut spans: Vec<Span<'static>>, more: Span<'static>| {
        spans.push(more);
        spans
    };
    let power = match (&m.power_source, m.power_uw.why()) {
        (Some(source), _) => Span::styled(words::escaped(source), dim(state)),
        (None, Some(Why::NotAsked)) => Span::styled("--sources package", dim(state)),
        (None, Some(Why::Denied)) => Span::styled(word!("root may read it"), dim(state)),
        (None, Some(Why::Dead)) => Span::styled(word!("it does not move"), dim(state)),
        (None, _) => Span::raw(""),
    };
    let freq = spelled(s.freq_khz, |khz| format!("{}GHz", words::ghz(khz)));
    let freq_note = if s.is_freq_stale && s.freq_khz.get().is_some() { word!("stale: no CPU ran") } else { "" };
    let mut heat = named(word!("heat"), spelled(m.temperature_mc, words::celsius));
    heat.push(Span::styled(word!("throttled "), dim(state)));
    let is_hot = s.throttles_per_s.get().is_some_and(|n| n > 0.0);
    heat.push(Span::styled(per_s(s.throttles_per_s), if is_hot { alarm(state) } else { Style::new() }));
    let (slept, asleep) = match rates.cpus.is_empty() {
        false => (s.n_asleep_throughout.to_string(), say!("of {} throughout", m.n_online)),
        true => ("–".into(), word!("not kept").into()),
    };
    let lines = vec![
        pair(
            with(named(word!("busy"), spelled(s.busy_ratio, percent)), graph(&state.history.busy, Some(1.0))),
            with(named(word!("wake-ups"), per_s(s.wakeups_per_s)), graph(&state.history.wakeups, None)),
        ),
        pair(
            with(named(word!("frequency"), freq), Span::styled(freq_note, dim(state))),
            with(named(word!("slept"), slept), Span::styled(asleep, dim(state))),
        ),
        pair(
            with(named(word!("power"), spelled(m.power_uw, words::watts)), clip(power, half.saturating_sub(23))),
            heat,
        ),
        limits(state, rates, width),
        bar_line(state, rates, width),
        legend(state, rates, width),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

fn accent_plain(state: &State) -> Style {
    if state.look.is_coloured { Style::new().fg(ratatui::style::Color::Cyan) } else { Style::new() }
}

fn clip(span: Span<'static>, width: usize) -> Span<'static> {
    if span.width() <= width {
        return span;
    }
    let text = format!("{}…", begin(&span.content, width.saturating_sub(1)));
    Span::styled(text, span.style)
}

/// Limits in force, who holds them; interrupts and switches where nothing is limited.
fn limits(state: &State, rates: &Rates, width: usize) -> Line<'static> {
    let m = &rates.machine;
    let is_limited = |l: Reading<LatencyLimit>| l.get().is_some_and(|l| l != LatencyLimit::None);
    let mut spans = vec![Span::styled(format!(" {}", padded(word!("limit"), 11)), dim(state))];
    let global = format!("{} ", right(&spelled(m.global_limit, words::limit), 9));
    spans.push(Span::styled(global, if is_limited(m.global_limit) { alarm(state) } else { strong() }));
    if is_limited(m.global_limit) {
        let holders = &m.limit_holders;
        let who =
            if holders.is_empty() { word!("by an unseen process").into() } else { say!("by {}", holders.join(", ")) };
        spans.push(Span::raw(words::escaped(&who)));
    }
    let limited: wakewatt_core::cpuset::CpuSet =
        rates.cpus.iter().filter(|c| is_limited(c.limit)).map(|c| c.cpu).collect();
    if !limited.is_empty() {
        let tightest = spelled(m.summary.cpu_limit, words::limit);
        spans.push(Span::styled(say!(" CPUs {limited}: {tightest} "), alarm(state)));
    } else if !is_limited(m.global_limit) {
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(Span::raw(" ".repeat((width / 2).saturating_sub(used))));
        let irq = spelled(m.interrupts_per_s, |n| format!("{}/s", count(n)));
        let switches = spelled(m.context_switches_per_s, |n| format!("{}/s", count(n)));
        spans.push(Span::styled(format!(" {}", padded(word!("interrupts"), 11)), dim(state)));
        spans.push(Span::styled(format!("{} ", right(&irq, 9)), strong()));
        spans.push(Span::styled(say!("switches {switches}"), dim(state)));
    }
    Line::from(spans)
}

fn bar_line(state: &State, rates: &Rates, width: usize) -> Line<'static> {
    let parts = glyphs::parts(state.look, &rates.machine.summary, &rates.states);
    let mut spans = vec![Span::raw(" ")];
    spans.extend(glyphs::bar(&parts, width.saturating_sub(2)));
    Line::from(spans)
}

fn legend(state: &State, rates: &Rates, width: usize) -> Line<'static> {
    let parts = glyphs::parts(state.look, &rates.machine.summary, &rates.states);
    let shown = || parts.iter().filter(|p| p.name != "stolen" || p.share.get() != Some(0.0));
    let whole = |ratio: f64| format!("{:.0}%", ratio * 100.0);
    let texts = |show: fn(f64) -> String| -> Vec<String> {
        shown().map(|p| format!(" {} {}  ", words::escaped(told(&p.name)), spelled(p.share, show))).collect()
    };
    let fits = |texts: &[String]| texts.iter().map(|t| places(t) + 1).sum::<usize>() < width;
    // With many states decimals go first.
    let exact = texts(percent);
    let texts = if fits(&exact) { exact } else { texts(whole) };
    let mut spans = vec![Span::raw(" ")];
    for (part, text) in shown().zip(texts) {
        spans.push(Span::styled(part.glyph.to_string(), part.style));
        spans.push(Span::raw(text));
    }
    Line::from(spans)
}

/// The panels' names and how the table is arranged.
pub(super) fn tabs(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let line = if state.look.is_unicode { "─" } else { "-" };
    let mut spans = vec![Span::styled(line.to_string(), dim(state))];
    let is_small = state.areas().middle.is_none();
    for (panel, name) in
        [(Panel::Cpus, word!("CPUs")), (Panel::Idle, word!("idle states")), (Panel::Heat, word!("power and heat"))]
    {
        if is_small || panel == Panel::Cpus {
            let is_here = state.panel == panel;
            let text = if is_here { format!("[{name}]") } else { format!(" {name} ") };
            spans.push(Span::styled(text, if is_here { accent(state) } else { dim(state) }));
        }
    }
    let mut right = say!(" by {} · sort {}", state.group.word(), state.sort.word());
    if !state.filter.is_empty() {
        right += &say!(" · filter {}", state.filter.text);
    }
    let n = state.rows.len();
    let last = (state.scroll + state.page()).min(n);
    if n > state.page() {
        right += &say!(" · {}-{last} of {n}", state.scroll + 1);
    }
    right.push(' ');
    let used: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(area.width).saturating_sub(used);
    let right = begin(&right, room).to_string();
    let fill = room.saturating_sub(places(&right));
    spans.push(Span::styled(line.repeat(fill), dim(state)));
    spans.push(Span::raw(right));
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// What to tell, what is typed, or the keys.
pub(super) fn footer(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let line = if let Some(text) = &state.editing {
        match &state.message {
            Some(message) => Line::styled(format!(" {}", words::escaped(message)), alarm(state)),
            None => Line::from(vec![
                Span::styled(word!(" filter: "), accent(state)),
                Span::raw(words::escaped(text)),
                Span::styled("█", accent(state)),
                Span::styled(word!("  0-3,8 busy>50 wakes>1000 asleep · enter, esc"), dim(state)),
            ]),
        }
    } else if let Some(message) = &state.message {
        Line::styled(format!(" {}", words::escaped(message)), alarm(state))
    } else {
        keys::line(state)
    };
    frame.render_widget(Paragraph::new(line), area);
}
