"""Your own loop under accelerate: the same file on one CPU, on several processes, on GPUs."""

import regard.torch
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    """Says whether the largest number of a row stands in its first half: sparse attention finds it."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Linear(2, width)
        self.attention = regard.torch.MultiheadAttention(width, 2, batch_first=True, normalizer="sparsemax")
        self.read = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        place = torch.linspace(-1, 1, x.shape[1], device=x.device).expand_as(x)
        embedded = self.embed(torch.stack([x, place], -1))
        found, _ = self.attention(embedded, embedded, embedded, need_weights=False)
        return self.read(found.mean(1))


def main(epochs: int = 12) -> list[float]:
    """Gives the loss at the start and at the end."""
    torch.manual_seed(1)
    x = torch.randn(512, 8)
    data = DataLoader(TensorDataset(x, (x.argmax(1) < 4).long()), batch_size=64, shuffle=True)
    accelerator = Accelerator(cpu=True)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for rows, labels in data:
            loss = nn.functional.cross_entropy(model(rows), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item() / len(data)
        losses.append(total)
    return [losses[0], losses[-1]]


if __name__ == "__main__":
    print("loss {:.3f} -> {:.3f}".format(*main()))
