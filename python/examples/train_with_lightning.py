"""A graph network of fused graph attention under Lightning: two groups of nodes, told apart by their neighbors."""

import lightning
import regard.torch
import torch
from torch import nn
from torch.utils.data import DataLoader


class Graph(lightning.LightningModule):
    """Two layers of GATv2; a node's class is that of its community."""

    def __init__(self) -> None:
        super().__init__()
        self.first = regard.torch.GATv2Conv(8, 8, heads=2)
        self.second = regard.torch.GATv2Conv(16, 2, concat=False)
        self.losses: list[float] = []

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x, edge_index)), edge_index)

    def training_step(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        x, edge_index, labels = batch
        loss = nn.functional.cross_entropy(self(x, edge_index), labels)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def communities(nodes: int = 60, edges: int = 300) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Noisy features, edges of which nine in ten stay within a community, and the communities."""
    labels = torch.arange(nodes) % 2
    source = torch.randint(nodes, (edges,))
    inside = torch.rand(edges) < 0.9
    target = 2 * torch.randint(nodes // 2, (edges,)) + torch.where(inside, labels[source], 1 - labels[source])
    return torch.randn(nodes, 8) + 0.5 * labels[:, None], torch.stack([source, target]), labels


def main(steps: int = 40) -> list[float]:
    """Gives the loss at the start and at the end."""
    torch.manual_seed(1)
    model = Graph()
    trainer = lightning.Trainer(
        max_steps=steps, max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    # One graph is one batch.
    trainer.fit(model, DataLoader([communities()], batch_size=None))
    return [model.losses[0], model.losses[-1]]


if __name__ == "__main__":
    print("loss {:.3f} -> {:.3f}".format(*main()))
