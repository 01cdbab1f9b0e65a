//! The picture of a training: its loss and the measure that decides, epoch by epoch.

use crate::run::record::Record;
use regard_picture::picture;
use regard_picture::picture::Panel;

pub(super) fn curves(title: &str, records: &[Record]) -> String {
    let points = |of: &dyn Fn(&Record) -> f64| -> Vec<(f64, f64)> {
        records.iter().map(|r| (r.epoch as f64, of(r))).collect()
    };
    let name = records.first().map_or("", |r| r.validation.first().0);
    let loss = Panel::new("loss", "epoch").line("training", &points(&|r| r.loss));
    let mut measure =
        Panel::new(name, "epoch").line("validation", &points(&|r| r.validation.first().1));
    if let Some(best) = records.iter().rfind(|r| r.best) {
        measure = measure.mark(best.epoch as f64, "best");
    }
    picture::curves(title, &[loss, measure])
}
