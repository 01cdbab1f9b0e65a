//! Batches hold every example once, with little padding.

use regard::prelude::*;
use regard_data::files::{BatchSize, batches};

fn lengths(count: usize) -> Vec<usize> {
    let random = Random::new(11);
    (0..count).map(|_| 1 + random.below(50)).collect()
}

fn padded(lengths: &[usize], batch: &[usize]) -> usize {
    batch.len() * batch.iter().map(|&example| lengths[example]).max().unwrap()
}

#[test]
fn every_example_is_in_one_batch() {
    for count in [0, 1, 7, 5000] {
        let lengths = lengths(count);
        for size in [
            BatchSize::Sequences(32),
            BatchSize::Sequences(usize::MAX),
            BatchSize::Tokens(300),
            BatchSize::Tokens(1),
            BatchSize::Tokens(usize::MAX),
        ] {
            for random in [None, Some(&Random::new(1))] {
                let mut all = batches(&lengths, size, random).unwrap().concat();
                all.sort();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn no_batch_holds_more_than_asked_but_one_long_sequence() {
    let mut lengths = lengths(3000);
    lengths[17] = 1000;
    let random = Random::new(1);
    for batch in batches(&lengths, BatchSize::Sequences(32), Some(&random)).unwrap() {
        assert!(batch.len() <= 32);
    }
    for batch in batches(&lengths, BatchSize::Tokens(300), Some(&random)).unwrap() {
        assert!(padded(&lengths, &batch) <= 300 || batch == [17]);
    }
}

#[test]
fn little_is_padding() {
    let lengths = lengths(6000);
    for size in [BatchSize::Sequences(16), BatchSize::Tokens(400)] {
        let batches = batches(&lengths, size, Some(&Random::new(1))).unwrap();
        let padded: usize = batches.iter().map(|batch| padded(&lengths, batch)).sum();
        let tokens: usize = lengths.iter().sum();
        assert!((padded as f64) < 1.05 * tokens as f64, "{padded} for {tokens} tokens");
        assert!(batches.len() < 420, "{} batches", batches.len());
    }
}

#[test]
fn batches_are_the_same_for_a_seed_and_others_for_the_next() {
    let lengths = lengths(1000);
    let of = |random: &Random| batches(&lengths, BatchSize::Sequences(10), Some(random)).unwrap();
    assert_eq!(of(&Random::new(1)), of(&Random::new(1)));
    assert_ne!(of(&Random::new(1)), of(&Random::new(2)));
    let random = Random::new(1);
    assert_ne!(of(&random), of(&random), "the next epoch is shuffled anew");
}

#[test]
fn batches_come_in_any_order_of_length() {
    let lengths = lengths(1000);
    let some = batches(&lengths, BatchSize::Sequences(10), Some(&Random::new(1))).unwrap();
    let longer = some.windows(2).filter(|two| lengths[two[0][0]] <= lengths[two[1][0]]).count();
    assert!((30..70).contains(&longer), "{longer} of 99");
}

#[test]
fn without_chance_examples_come_by_length_and_equals_in_their_order() {
    let some = batches(&[3, 1, 3, 2, 1], BatchSize::Sequences(2), None).unwrap();
    assert_eq!(some, [vec![1, 4], vec![3, 0], vec![2]]);
}

#[test]
fn batches_of_nothing_are_refused() {
    for size in [BatchSize::Sequences(0), BatchSize::Tokens(0)] {
        let error = batches(&[1], size, None).unwrap_err().to_string();
        assert_eq!(error, "a batch holds at least 1; 0 was asked for");
    }
}
