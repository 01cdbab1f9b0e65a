"""Hugging Face's Trainer on the operator: a small Mistral with a sliding window learns to count, without a download."""

import tempfile

import regard.transformers
import torch
from transformers import MistralConfig, MistralForCausalLM, Trainer, TrainingArguments


def main(steps: int = 30) -> list[float]:
    """Gives the loss at the start and at the end."""
    regard.transformers.register()
    torch.manual_seed(1)
    config = MistralConfig(
        vocab_size=10, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=4,
    )  # fmt: skip
    model = MistralForCausalLM._from_config(config, attn_implementation="regard")
    rows = [[(start + n) % 10 for n in range(16)] for start in range(10)] * 4
    data = [{"input_ids": torch.tensor(row), "labels": torch.tensor(row)} for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=8, learning_rate=3e-3, logging_steps=steps // 3,
            report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = Trainer(model=model, args=arguments, train_dataset=data)
        trainer.train()
    losses = [float(row["loss"]) for row in trainer.state.log_history if "loss" in row]
    return [losses[0], losses[-1]]


if __name__ == "__main__":
    print("loss {:.3f} -> {:.3f}".format(*main()))
