//! A page in one's own browser for looking into trained runs.
