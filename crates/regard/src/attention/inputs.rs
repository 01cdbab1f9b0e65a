//! One thing for each tensor that attention has gradients for.

/// One thing for each tensor that attention has gradients for, in the order of the tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs<X> {
    pub(super) q: X,
    pub(super) k: X,
    pub(super) v: X,
    pub(super) learned: Learned<X>,
}

/// One thing for each tensor that may be learned beside q, k and v.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned<X> {
    /// The vector of the additive score.
    pub(super) w: X,
    /// The numbers of your own score.
    pub(super) own: X,
    pub(super) key_bias: X,
    pub(super) bias: X,
    pub(super) relative: X,
}

impl<X> Inputs<X> {
    pub(super) fn into_array(self) -> [X; 8] {
        let Self { q, k, v, learned: Learned { w, own, key_bias, bias, relative } } = self;
        [q, k, v, w, own, key_bias, bias, relative]
    }

    pub(super) fn from_array([q, k, v, w, own, key_bias, bias, relative]: [X; 8]) -> Self {
        Self { q, k, v, learned: Learned { w, own, key_bias, bias, relative } }
    }
}

impl<X> Learned<X> {
    pub(super) fn as_ref(&self) -> Learned<&X> {
        let Self { w, own, key_bias, bias, relative } = self;
        Learned { w, own, key_bias, bias, relative }
    }

    pub(super) fn as_mut(&mut self) -> Learned<&mut X> {
        let Self { w, own, key_bias, bias, relative } = self;
        Learned { w, own, key_bias, bias, relative }
    }

    pub(super) fn zip<Y>(self, other: Learned<Y>) -> Learned<(X, Y)> {
        Learned {
            w: (self.w, other.w),
            own: (self.own, other.own),
            key_bias: (self.key_bias, other.key_bias),
            bias: (self.bias, other.bias),
            relative: (self.relative, other.relative),
        }
    }

    /// `f` of each, by the name that messages give it.
    pub(super) fn try_map<Y, E>(
        self,
        mut f: impl FnMut(&'static str, X) -> Result<Y, E>,
    ) -> Result<Learned<Y>, E> {
        Ok(Learned {
            w: f("w", self.w)?,
            own: f("the own score's parameter tensor", self.own)?,
            key_bias: f("the key bias", self.key_bias)?,
            bias: f("the bias", self.bias)?,
            relative: f("the relative bias", self.relative)?,
        })
    }
}
