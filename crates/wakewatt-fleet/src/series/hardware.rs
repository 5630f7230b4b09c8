//! What a machine is, from labels: the words of processor, cores and memory that make classes.

use super::answer::Labels;
use super::promql::About;
use crate::table::Hardware;

/// Takes a describing series into account.
pub(super) fn learn(hardware: &mut Hardware, about: About, labels: &Labels, value: f64, n_cpus: Option<u32>) {
    let label = |key: &str| labels.get(key).filter(|v| !v.is_empty()).cloned();
    match about {
        About::Processor => hardware.processor = label("model_name").or(hardware.processor.take()),
        About::Settings => hardware.processor = hardware.processor.take().or(label("processor")),
        About::KubeLabels => {
            hardware.processor = hardware.processor.take().or(label("label_node_kubernetes_io_instance_type"));
        }
        About::Dmi => hardware.processor = hardware.processor.take().or(label("product_name")),
        About::Memory => hardware.memory_gib = rounded_gib(value),
        About::Cores => {
            let n_cores = whole(value).filter(|n| *n > 0);
            hardware.n_threads = n_cpus.zip(n_cores).map(|(cpus, cores)| cpus / cores).filter(|n| *n > 0);
        }
        _ => {}
    }
}

/// To the nearest of two, three or four significant binary steps, so that 251 and 252 GiB of the same DIMMs are one.
pub(crate) fn rounded_gib(bytes: f64) -> Option<u32> {
    let gib = bytes / f64::from(1 << 30);
    let step = (gib.max(1.0).log2().floor() - 3.0).exp2().max(1.0);
    whole((gib / step).round() * step)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked
fn whole(value: f64) -> Option<u32> {
    (value >= 0.0 && value < f64::from(u32::MAX)).then_some(value.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_equal_dimms_is_equal() {
        let gib = |n: f64| rounded_gib(n * f64::from(1 << 30));
        assert_eq!((gib(251.4), gib(252.3), gib(188.0)), (gib(256.0), Some(256), Some(192)));
        assert_eq!((gib(0.9), gib(f64::NAN), gib(-1.0)), (Some(1), None, None));
    }
}
