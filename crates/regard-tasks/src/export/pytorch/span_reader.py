

class Pointer(nn.Module):
    def __init__(self, c, asked, width):
        super().__init__()
        self.query, self.score = nn.Linear(asked, width), Scores(c["mechanism"]["score"], width, width)

    def forward(self, question, words):
        return self.score(self.query(question)[:, None, None], words[:, None])[:, 0, 0]


class Query(nn.Module):
    """The question in one vector, by attention with a learned query."""

    def __init__(self, c, width):
        super().__init__()
        self.query, self.mechanism = nn.Parameter(torch.zeros(1, width)), Scores(c["mechanism"]["score"], width, width)


class Model(nn.Module):
    """Scores [B, 2, N] of each word to be the first and the last of the answer: text [B, N] and questions [B, M] are token ids,
    lengths and question_lengths [B] say how many; features [B, N, F] are more numbers about each word, where the model reads some."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.c, width = c, c["width"]
        self.embedding = nn.Embedding(c["vocabulary"], width)
        self.question = encoder(c["encoder"], width)
        asked = self.question.width
        if c["attention"]:
            self.alignment, self.summary = Scores(c["mechanism"]["score"], width, width), Query(c, asked)
        self.text = encoder(c["encoder"], width + asked + c["attention"] * 2 * width + c["features"])
        self.start, self.end = Pointer(c, asked, self.text.width), Pointer(c, asked, self.text.width)

    def forward(self, text, lengths, questions, question_lengths, features=None):
        weighting, seen = self.c["mechanism"]["weighting"], keep(question_lengths, questions.shape[1])
        words, asked = (self.embedding(ids) * math.sqrt(self.c["width"]) for ids in (text, questions))
        out, last = self.question(asked * seen[..., None], question_lengths)
        parts = []
        if self.c["attention"]:
            aligned, _ = attend(self.alignment, words, asked, seen[:, None], weighting)
            parts = [aligned, words * aligned]
            of = self.summary.query.expand(len(text), 1, -1)
            query = attend(self.summary.mechanism, of, out, seen[:, None], weighting)[0][:, 0]
        else:
            query = summary(out, last, question_lengths)
        everywhere = query[:, None].expand(-1, text.shape[1], -1)
        there = keep(lengths, text.shape[1])
        read = torch.cat([words, everywhere, *parts, *([] if features is None else [features])], 2)
        read, _ = self.text(read * there[..., None], lengths)
        scores = torch.stack([self.start(query, read), self.end(query, read)], 1)
        return scores.masked_fill(~there[:, None], -1e9)
