//! What backends made of an expression, kept for the next call.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How much is kept; a model has few shapes.
const MOST: usize = 64;

type Entry = (Box<dyn Any + Send>, Arc<dyn Any + Send + Sync>);

/// Values by keys of any type. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Cache(Arc<Mutex<Vec<Entry>>>);

impl Cache {
    /// The value of a key, made where there is none.
    pub(crate) fn get<K, V>(&self, key: K, make: impl FnOnce() -> V) -> Arc<V>
    where
        K: PartialEq + Send + 'static,
        V: Send + Sync + 'static,
    {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().find(|(known, _)| known.downcast_ref::<K>() == Some(&key));
        let found = found.and_then(|(_, value)| Arc::clone(value).downcast::<V>().ok());
        found.unwrap_or_else(|| {
            let value = Arc::new(make());
            if entries.len() >= MOST {
                entries.remove(0);
            }
            entries.push((Box::new(key), Arc::clone(&value) as _));
            value
        })
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Cache")
    }
}
