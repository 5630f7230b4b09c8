//! Where things go on a screen of this size: all panels at once where there is room, else one of them in the table's place.

use ratatui::layout::{Constraint, Layout, Rect};

/// From here on all panels are shown at once.
const LARGE: (u16, u16) = (140, 36);
const OVERVIEW_LINES: u16 = 6;

/// Where things go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Areas {
    pub(super) header: Rect,
    pub(super) overview: Rect,
    /// Both panels side by side, on a large screen.
    pub(super) middle: Option<(Rect, Rect)>,
    pub(super) tabs: Rect,
    /// The table with its heading; on a small screen the panel that was chosen.
    pub table: Rect,
    pub(super) footer: Rect,
}

impl Areas {
    /// On a screen of this size, whose panels have so many rows to show.
    pub fn on(size: (u16, u16), n_rows: usize) -> Areas {
        let all = Rect::new(0, 0, size.0, size.1);
        let is_large = size.0 >= LARGE.0 && size.1 >= LARGE.1;
        let middle_lines = match is_large {
            true => u16::try_from(n_rows + 6).unwrap_or(u16::MAX).clamp(9, 18).min(size.1 / 3),
            false => 0,
        };
        let [header, overview, middle, tabs, table, footer] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(OVERVIEW_LINES),
            Constraint::Length(middle_lines),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(all);
        let [left, right] = Layout::horizontal([Constraint::Percentage(56), Constraint::Percentage(44)]).areas(middle);
        Areas { header, overview, middle: is_large.then_some((left, right)), tabs, table, footer }
    }
}
