

def recurrent(c, wide):
    cell = {"gru": nn.GRU, "lstm": nn.LSTM}.get(c["cell"], nn.RNN)

    class Recurrent(cell):
        """Gives its outputs and the last states, of both directions side by side."""

        def forward(self, x, lengths):
            if not len(lengths) or not int(lengths.max()):
                return x.new_zeros(*x.shape[:2], self.width), x.new_zeros(len(x), self.width)
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
            out, state = super().forward(packed)
            out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
            state = state[0] if isinstance(state, tuple) else state
            last = torch.cat(list(state[-self.directions :]), 1)
            some = (lengths > 0)[:, None]
            return out * some[..., None], last * some

    more = {"nonlinearity": "relu"} if c["cell"] == "rnn-relu" else {}
    network = Recurrent(wide, c["hidden"], c["layers"], batch_first=True, bidirectional=c["both_directions"], **more)
    network.directions = 1 + c["both_directions"]
    network.width = c["hidden"] * network.directions
    return network
