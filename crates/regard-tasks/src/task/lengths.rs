//! How long sequences are, in words.

use regard_data::remark;

/// "2 to 9 tokens, 4.5 on average, 4 in the middle".
pub(crate) fn lengths(mut all: Vec<usize>, what: &str) -> String {
    all.sort_unstable();
    let mean = all.iter().sum::<usize>() as f64 / all.len().max(1) as f64;
    let at = |place: usize| all.get(place).copied().unwrap_or(0);
    let [least, middle, most] = [0, all.len() / 2, all.len().saturating_sub(1)].map(at);
    format!("{least} to {most} {what}, {mean:.1} on average, {middle} in the middle")
}

/// Says how many of the training part's sequences are longer than what is learned from, where there are
/// some.
pub(crate) fn remark_left_out(long: usize, all: usize, things: &str, longest: usize, unit: &str) {
    if long > 0 {
        remark(format!(
            "{all} training {things}: {} used, {long} left out for having more than `data.max_length` = \
             {longest} {unit}",
            all - long
        ));
    }
}

/// What to say of texts or recordings that are longer than what is read of one, where there are some.
pub(crate) fn read_so_far(
    long: usize,
    all: usize,
    things: &str,
    longest: usize,
    unit: &str,
) -> Option<String> {
    (long > 0).then(|| {
        format!(
            "{long} of {all} {things} have more than `data.max_length` = {longest} {unit}, and were \
             read so far"
        )
    })
}
