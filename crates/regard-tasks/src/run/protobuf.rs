//! Protocol Buffers, which ONNX and TensorBoard read: fields one after the other, each under its number.

/// A message under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.number(field << 3 | wire);
    }

    pub(crate) fn int(mut self, field: u64, value: i64) -> Self {
        self.key(field, 0);
        self.number(value as u64);
        self
    }

    pub(crate) fn float(mut self, field: u64, value: f32) -> Self {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn double(mut self, field: u64, value: f64) -> Self {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.key(field, 2);
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub(crate) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    pub(crate) fn ints(self, field: u64, values: &[i64]) -> Self {
        let mut packed = Self::default();
        values.iter().for_each(|&value| packed.number(value as u64));
        self.message(field, &packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_encoding_says() {
        // The examples of protobuf's own documentation.
        assert_eq!(Message::default().int(1, 150).finish(), [0x08, 0x96, 0x01]);
        let testing = Message::default().text(2, "testing").finish();
        assert_eq!(testing, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let packed = Message::default().ints(6, &[3, 270, 86942]).finish();
        assert_eq!(packed, [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]);
    }
}
