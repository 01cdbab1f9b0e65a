//! Dates as people write them, and as machines do.

use super::distinct;
use crate::Result;
use regard::tensor::Random;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const ORDINALS: [&str; 31] = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty-first",
    "twenty-second",
    "twenty-third",
    "twenty-fourth",
    "twenty-fifth",
    "twenty-sixth",
    "twenty-seventh",
    "twenty-eighth",
    "twenty-ninth",
    "thirtieth",
    "thirty-first",
];

/// Years that are drawn: 1900 to 2099.
const FIRST_YEAR: usize = 1900;
const YEARS: usize = 200;

/// How many ways of writing there are in [`Date::written`].
const FORMS: usize = 16;

/// `count` different written dates, each with its form year-month-day. Figures alone are day
/// first: `03.05.1999` is the third of May.
///
/// ```
/// let dates = regard_data::toy::dates(3, 1)?;
/// assert_eq!(dates.len(), 3);
/// assert!(dates.iter().all(|(_, normal)| normal.len() == "1999-05-03".len()));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn dates(count: usize, seed: u64) -> Result<Vec<(String, String)>> {
    let random = Random::named(seed, "dates");
    let draw = || {
        let date = Date::draw(&random);
        (date.written(random.below(FORMS)), date.normal())
    };
    // One day may come in several forms: only the written side must differ.
    distinct(count, "dates", draw, |(written, _)| vec![written.clone()])
}

struct Date {
    year: usize,
    /// From 1.
    month: usize,
    /// From 1.
    day: usize,
}

impl Date {
    fn draw(random: &Random) -> Self {
        let year = FIRST_YEAR + random.below(YEARS);
        let month = 1 + random.below(12);
        Self { year, month, day: 1 + random.below(days(year, month)) }
    }

    fn normal(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    fn written(&self, form: usize) -> String {
        let Self { year, month, day } = self;
        let name = MONTHS[month - 1];
        let short = &name[..3];
        let weekday = WEEKDAYS[self.weekday()];
        let words = ORDINALS[day - 1];
        let nth = format!("{day}{}", ending(*day));
        match form {
            0 => format!("{name} {day}, {year}"),
            1 => format!("{day} {name} {year}"),
            2 => format!("{nth} of {name} {year}"),
            3 => format!("the {nth} of {name}, {year}"),
            4 => format!("the {words} of {name}, {year}"),
            5 => format!("{name} the {words}, {year}"),
            6 => format!("{name} {nth} {year}"),
            7 => format!("{short} {day} {year}"),
            8 => format!("{day} {short} {year}"),
            9 => format!("{day:02}.{month:02}.{year}"),
            10 => format!("{day}/{month}/{year}"),
            11 => format!("{year}, {name} {day}"),
            12 => format!("{weekday}, {name} {day} {year}"),
            13 => format!("{weekday} the {nth} of {name} {year}"),
            14 => format!("{}, {day} {short} {year}", &weekday[..3]),
            _ => format!("in {year}, on the {words} of {name}"),
        }
    }

    /// From 0, Monday. 1 January 1900 was one.
    fn weekday(&self) -> usize {
        let years: usize = (FIRST_YEAR..self.year).map(|year| 365 + leap(year) as usize).sum();
        let months: usize = (1..self.month).map(|month| days(self.year, month)).sum();
        (years + months + self.day - 1) % 7
    }
}

fn leap(year: usize) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days(year: usize, month: usize) -> usize {
    match month {
        2 => 28 + leap(year) as usize,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn ending(day: usize) -> &'static str {
    match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    }
}
