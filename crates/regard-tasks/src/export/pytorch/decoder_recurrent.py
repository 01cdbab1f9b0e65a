

class RecurrentDecoder(nn.Module):
    def __init__(self, c, wide):
        super().__init__()
        self.c, d, embedding = c, c["decoder"], c["embedding"]
        cell = {"gru": nn.GRU, "lstm": nn.LSTM}.get(d["cell"], nn.RNN)
        more = {"nonlinearity": "relu"} if d["cell"] == "rnn-relu" else {}
        self.cell = cell(embedding + wide, d["hidden"], d["layers"], batch_first=True, **more)
        self.bridge = nn.Linear(wide, d["hidden"] * d["layers"] * (2 if d["cell"] == "lstm" else 1))
        if c["context"]["kind"] == "attention":
            self.attention = Scores(c["context"]["score"], d["hidden"], wide)
        self.query_gain = nn.Parameter(torch.ones(1)) if c["query_gain"] else None
        self.readout, self.width = nn.Linear(d["hidden"] + embedding + wide, embedding), embedding

    def forward(self, y, out, fixed, there):
        layers = self.c["decoder"]["layers"]
        states = torch.tanh(self.bridge(fixed)).split(self.c["decoder"]["hidden"], 1)
        h, cell = torch.stack(states[:layers]), torch.stack(states[layers:]) if states[layers:] else None
        hidden, weights = [], []
        for token in y.unbind(1):
            context = fixed
            if hasattr(self, "attention"):
                query = h[-1][:, None] if self.query_gain is None else h[-1][:, None] * self.query_gain
                context, weight = attend(self.attention, query, out, there[:, None], self.c["context"]["weighting"])
                context = context[:, 0]
                weights.append(weight)
            step = torch.cat([token, context], 1)[:, None]
            state, after = self.cell(step, h if cell is None else (h, cell))
            h, cell = (after, None) if cell is None else after
            hidden.append(torch.tanh(self.readout(torch.cat([state[:, 0], token, context], 1))))
        return torch.stack(hidden, 1), torch.cat(weights, 1) if weights else None
