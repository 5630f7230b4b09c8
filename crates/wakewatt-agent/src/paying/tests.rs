//! Months in a moment: cgroups by the thousand come, lose and go.

use super::*;

/// Adds up as the probe does, and looks at what the agent makes of it.
struct Months {
    payers: Payers,
    start: Instant,
    now: Instant,
    totals: BTreeMap<StateKey, Lost>,
    last: Sums,
    /// Ever had a place.
    seen: std::collections::BTreeSet<String>,
}

impl Months {
    fn new(n_places: usize) -> Months {
        let start = Instant::now();
        Months {
            payers: Payers::new(PayerKind::Pod, n_places, start),
            start,
            now: start,
            totals: BTreeMap::new(),
            last: Sums::new(),
            seen: Default::default(),
        }
    }

    /// A reading ten seconds later: these lost so much in state `C6`, and `untold_ns` was of nobody.
    fn read(&mut self, lost: &[(String, u64)], untold_ns: u64) {
        self.now += Duration::from_secs(10);
        let state: StateKey = ("C6".into(), 3);
        let mut grown = BTreeMap::new();
        let total = self.totals.entry(state.clone()).or_default();
        for (name, ns) in lost {
            grown.insert((name.clone(), state.clone()), Lost { n: 1, ns: *ns });
            total.add(Lost { n: 1, ns: *ns });
        }
        total.add(Lost { n: u64::from(untold_ns > 0), ns: untold_ns });
        self.payers.advance(self.now, &Paid { grown, totals: self.totals.clone() });
        self.look();
    }

    fn look(&mut self) {
        let sums = self.payers.sums();
        for (key, sum) in &sums {
            // A payer that was away begins anew, at 0.
            let before = self.last.get(key).copied().unwrap_or_default();
            assert!(sum.n >= before.n && sum.ns >= before.ns, "{key:?} stepped back");
            self.seen.extend(key.0.clone());
        }
        let mut all: BTreeMap<StateKey, Lost> = self.payers.retired().clone();
        for ((_, state), sum) in &sums {
            all.entry(state.clone()).or_default().add(*sum);
        }
        assert_eq!(all, self.totals, "named, others and retired are all there is");
        assert!(self.payers.places.len() <= self.payers.n_places && self.payers.watched.len() <= MOST_WATCHED);
        self.last = sums;
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.payers.places.iter().map(|place| place.name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

fn lost(name: &str, ns: u64) -> (String, u64) {
    (name.into(), ns)
}

#[test]
fn the_heaviest_have_names_and_everybody_is_counted() {
    let mut months = Months::new(2);
    for _ in 0..12 {
        months.read(&[lost("a", 10_000), lost("b", 500_000), lost("c", 90_000)], 7);
    }
    assert_eq!(months.names(), ["b", "c"]);
    let state: StateKey = ("C6".into(), 3);
    let of = |name: Option<&str>| months.payers.sums()[&(name.map(String::from), state.clone())];
    // The first minute was before anybody had a place.
    assert_eq!((of(Some("b")).n, of(None).n), (6, 12 * 4 - 12));
    assert_eq!(months.payers.n_untold(), 12);
    let (recent, window) = months.payers.recent(months.now);
    assert_eq!((recent[&(Some("c".into()), state)].ns, window), (6 * 90_000, Duration::from_secs(60)));
}

#[test]
fn thousands_that_come_and_go_cost_no_series_and_no_memory() {
    let mut months = Months::new(5);
    let steady = ["web", "db", "cache"];
    // Two days of ten seconds each; every reading has 20 jobs that nobody sees again, each heavier than any of the steady ones.
    let n_readings: u64 = 2 * 24 * 360;
    for at in 0..n_readings {
        let mut all: Vec<(String, u64)> = steady.iter().map(|name| lost(name, 200_000)).collect();
        all.extend((0..20).map(|job| lost(&format!("job-{at}-{job}"), 300_000 + job)));
        months.read(&all, 11);
    }
    for name in steady {
        assert!(months.names().contains(&name), "{:?}", months.names());
    }
    // 345,000 payers; a place that is silent goes on after ten minutes, so five places have seen few of them.
    let n_hours = 48;
    assert!(months.seen.len() <= 5 * (n_hours * 6 + 2), "{}", months.seen.len());
    assert_eq!(months.payers.n_untold(), n_readings);
    assert!(months.now - months.start > Duration::from_secs(47 * 3600));
}

#[test]
fn a_place_is_kept_for_an_hour_and_then_goes_to_one_twice_as_strong() {
    let mut months = Months::new(1);
    for _ in 0..6 {
        months.read(&[lost("light", 1_000)], 0);
    }
    assert_eq!(months.names(), ["light"]);
    for _ in 0..350 {
        months.read(&[lost("light", 1_000), lost("heavy", 1_000_000)], 0);
    }
    assert_eq!(months.names(), ["light"], "its first hour");
    for _ in 0..20 {
        months.read(&[lost("light", 1_000), lost("heavy", 1_000_000)], 0);
    }
    assert_eq!(months.names(), ["heavy"]);
    for _ in 0..1_000 {
        months.read(&[lost("like", 1_500_000), lost("heavy", 1_000_000)], 0);
    }
    assert_eq!(months.names(), ["heavy"], "not for a little more");
    let state: StateKey = ("C6".into(), 3);
    assert!(months.payers.retired()[&state].n > 300);
    // Who fell silent leaves after ten minutes, and may come back, from 0.
    for _ in 0..70 {
        months.read(&[lost("like", 1_500_000)], 0);
    }
    assert_eq!(months.names(), ["like"]);
}

#[test]
fn a_reading_that_is_torn_counts_nothing_twice() {
    let state: StateKey = ("C6".into(), 3);
    let start = Instant::now();
    let mut payers = Payers::new(PayerKind::Cgroup, 1, start);
    let mut take = |at_s: u64, grown: u64, total: u64| {
        let lost = |n: u64| Lost { n, ns: 100 * n };
        let grown = [(("/a".to_string(), state.clone()), lost(grown))].into_iter().collect();
        let totals = [(state.clone(), lost(total))].into_iter().collect();
        payers.advance(start + Duration::from_secs(at_s), &Paid { grown, totals });
        let sum = |name: Option<&str>| payers.sums().get(&(name.map(String::from), state.clone())).map_or(0, |l| l.n);
        (sum(Some("/a")), sum(None))
    };
    assert_eq!(take(60, 10, 10), (0, 10));
    // Five happened after the cgroups were read and before the sums were.
    assert_eq!(take(70, 10, 25), (10, 15));
    assert_eq!(take(80, 5, 25), (15, 15), "ahead by the five, and not back");
    assert_eq!(take(90, 20, 45), (35, 15), "by no more than that");
    assert_eq!(take(100, 0, 55), (35, 20), "even again when others lose something");
}

#[test]
fn a_name_is_shown_and_not_endless() {
    assert_eq!(shown("/a\u{1b}[2J\n"), r"/a\x1b[2J\n");
    let long = format!("/{}ende", "ä".repeat(3_000));
    let cut = shown(&long);
    assert!(cut.chars().count() == LONGEST + 1 && cut.starts_with('…') && cut.ends_with("ende"), "{cut}");
}
