//! The figures: each answers one question, is drawn for a wide page and for a phone, and is labelled directly.
//!
//! Arms keep their colour, line style and mark through the whole page (`a0`, `a1`, `a2` … in the style sheet), so
//! nobody hunts for a legend and grey print still tells them apart. Latency axes are logarithmic: idle costs are
//! factors, and a tail a hundred times out must stay on the page.

pub(super) mod axis;
pub(super) mod distribution;
pub(super) mod forest;
pub(super) mod rounds;
pub(in crate::report) mod svg;

/// The two widths, in CSS pixels: the page's column, and a 390 px phone less its margins.
pub(in crate::report) const WIDTHS: [(&str, f64); 2] = [("wide", 760.0), ("narrow", 350.0)];

/// Arms beyond the fourth share the fourth's style; their labels still tell them apart.
pub(super) fn arm_class(index: usize) -> usize {
    index.min(3)
}

/// Moves label positions apart so that no two are nearer than `gap`, keeping their order, inside `low..high`.
pub(super) fn spread(positions: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by(|&a, &b| positions[a].total_cmp(&positions[b]));
    let mut out = positions.to_vec();
    let mut floor = low;
    for &i in &order {
        out[i] = out[i].max(floor);
        floor = out[i] + gap;
    }
    let mut ceiling = high;
    for &i in order.iter().rev() {
        out[i] = out[i].min(ceiling);
        ceiling = out[i] - gap;
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn labels_are_moved_apart_and_keep_their_order() {
        assert_eq!(super::spread(&[10.0, 11.0, 50.0], 10.0, 0.0, 100.0), [10.0, 20.0, 50.0]);
        assert_eq!(super::spread(&[99.0, 98.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
    }
}
