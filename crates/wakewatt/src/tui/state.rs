//! What the screen knows. Pure data: [`update`](super::update::update) changes it, `view` draws it, neither touches
//! anything else.

use super::areas::Areas;
use super::filter::Filter;
use super::history::History;
use super::rows::{GroupBy, Key, Row, Sort, rows};
use std::collections::BTreeSet;
use wakewatt_core::watch::{LatencyRow, Layout, Rates};

/// How things look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours at all?
    pub is_coloured: bool,
    /// Block characters, or plain ASCII.
    pub is_unicode: bool,
}

/// Parts of the screen between which tab switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    /// The table of CPUs.
    #[default]
    Cpus,
    /// Idle states and wake-up latency.
    Idle,
    /// Watts, temperatures, fans, what is not available.
    Heat,
}

/// Time travel.
#[derive(Clone, Debug, PartialEq)]
pub struct Play {
    /// The interval shown.
    pub at: usize,
    /// Intervals in all.
    pub n: usize,
    /// Running by itself?
    pub is_running: bool,
    /// How much faster than it happened.
    pub speed: u32,
    /// Why the recording ended, or that it was cut off.
    pub end: String,
}

/// What is being recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Moments written.
    pub n: u64,
    /// Why nothing more is.
    pub trouble: Option<String>,
}

/// The machine's name tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Title {
    /// Host, or where it comes from.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Idle driver and governor.
    pub idle: String,
    /// CPUs.
    pub n_cpus: usize,
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Name tag.
    pub title: Title,
    /// Columns and lines.
    pub size: (u16, u16),
    /// Colours and characters.
    pub look: Look,
    /// The last interval.
    pub rates: Option<Rates>,
    /// Those before.
    pub history: History,
    /// The table's rows, made from `rates` whenever something changes.
    pub rows: Vec<Row>,
    /// Grouping.
    pub group: GroupBy,
    /// Order.
    pub sort: Sort,
    /// Which CPUs.
    pub filter: Filter,
    /// The filter being typed.
    pub editing: Option<String>,
    /// Groups that show their CPUs.
    pub unfolded: BTreeSet<Key>,
    /// The marked row.
    pub selected: usize,
    /// The first row shown.
    pub scroll: usize,
    /// Which part has the keys, and on a small screen is shown.
    pub panel: Panel,
    /// Nothing changes until further notice.
    pub is_paused: bool,
    /// The help is open.
    pub is_help: bool,
    /// Time between readings.
    pub interval_ns: u64,
    /// Playing a recording.
    pub play: Option<Play>,
    /// Writing one.
    pub recorded: Option<Recorded>,
    /// What to tell.
    pub message: Option<String>,
    /// Wake-up latency by state, or why there is none.
    pub latency: Result<Vec<LatencyRow>, String>,
}

impl State {
    /// Before the first interval.
    pub fn new(layout: &Layout, look: Look, size: (u16, u16), interval_ns: u64) -> State {
        let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.to_string());
        let idle = match (&layout.idle_driver, &layout.idle_governor) {
            (Some(driver), Some(governor)) => format!("{driver}/{governor}"),
            (Some(driver), None) => driver.clone(),
            _ => "no idle driver".into(),
        };
        State {
            title: Title {
                host: or(&layout.hostname, &layout.origin),
                kernel: or(&layout.kernel, "?"),
                idle,
                n_cpus: layout.cpus.len(),
            },
            size,
            look,
            rates: None,
            history: History::default(),
            rows: Vec::new(),
            group: GroupBy::start(None, layout.cpus.len()),
            sort: Sort::default(),
            filter: Filter::default(),
            editing: None,
            unfolded: BTreeSet::new(),
            selected: 0,
            scroll: 0,
            panel: Panel::default(),
            is_paused: false,
            is_help: false,
            interval_ns,
            play: None,
            recorded: None,
            message: None,
            latency: Err("no tracing probe in this program".into()),
        }
    }

    /// Makes the rows anew and keeps mark and window inside them.
    pub fn refresh(&mut self) {
        if let Some(rates) = &self.rates {
            let marked = self.rows.get(self.selected).map(|r| (r.key, r.is_child));
            self.rows = rows(rates, self.group, self.sort, &self.filter, &self.unfolded);
            // The mark stays with its row when the order changes.
            if let Some(at) = marked.and_then(|m| self.rows.iter().position(|r| (r.key, r.is_child) == m)) {
                self.selected = at;
            }
        }
        self.keep_in_sight();
    }

    /// Where things go on this screen.
    pub fn areas(&self) -> Areas {
        let n_states = self.rates.as_ref().map_or(0, |r| r.states.len());
        Areas::on(self.size, n_states + self.latency.as_ref().map_or(0, Vec::len))
    }

    /// Lines of the table that fit.
    pub fn page(&self) -> usize {
        usize::from(self.areas().table.height.saturating_sub(1)).max(1)
    }

    /// Mark and window stay inside the rows.
    pub fn keep_in_sight(&mut self) {
        let page = self.page();
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
        if self.selected < self.scroll {
            self.scroll = self.selected;
        } else if self.selected >= self.scroll + page {
            self.scroll = self.selected + 1 - page;
        }
        self.scroll = self.scroll.min(self.rows.len().saturating_sub(page));
    }
}
