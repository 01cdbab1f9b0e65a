//! The option `training.class_weights`.

use regard_data::{Error, Result};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The option `training.class_weights`: how much each label counts in the loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ClassWeights {
    /// All examples count the same.
    #[default]
    None,
    /// A label counts n / (k · its examples), of n examples with k labels, as scikit-learn has it:
    /// all labels count the same.
    Balanced,
    /// These labels count so much, and all others 1.
    ByLabel(BTreeMap<String, f64>),
}

impl ClassWeights {
    /// Refuses weights that cannot be meant, by label.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::ByLabel(weights) = self else { return Ok(()) };
        match weights.iter().find(|(_, weight)| !(weight.is_finite() && **weight >= 0.0)) {
            Some((label, weight)) => Err(Error::invalid(format!(
                "`training.class_weights`: the weight of `{label}` cannot be {weight}"
            ))),
            None => Ok(()),
        }
    }
}

impl Serialize for ClassWeights {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_str("none"),
            Self::Balanced => to.serialize_str("balanced"),
            Self::ByLabel(weights) => weights.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for ClassWeights {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = ClassWeights;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"none\", \"balanced\" or weights by label, as { spam = 3.0 }")
            }

            fn visit_str<E: serde::de::Error>(
                self,
                name: &str,
            ) -> std::result::Result<Self::Value, E> {
                match name {
                    "none" => Ok(ClassWeights::None),
                    "balanced" => Ok(ClassWeights::Balanced),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(name), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut weights = BTreeMap::new();
                while let Some((label, weight)) = map.next_entry::<String, f64>()? {
                    weights.insert(label, weight);
                }
                Ok(ClassWeights::ByLabel(weights))
            }
        }
        from.deserialize_any(Form)
    }
}
