"""Whether exported models answer as Regard does: the PyTorch module by PyTorch, the ONNX file by onnxruntime.

    python3 bench/export.py [--regard target/release/regard] [--filter label]

Trains a model of each kind for a moment, exports it, and compares. Wants torch, safetensors and onnxruntime.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import torch
from safetensors.numpy import load_file

# Numbers of f32 summed in another order.
LARGEST_DIFFERENCE = 2e-4

SMALL = ["epochs=1", "size=60"]
ENCODERS = [["encoder=none"], ["encoder=rnn"], ["encoder=rnn-relu"], ["encoder=gru", "bidirectional=true", "layers=2"], ["encoder=lstm", "bidirectional=true"], ["encoder=cnn", "layers=2"]]
POSITIONS = [["encoder=transformer", "layers=2", f"position={name}"] for name in ["none", "sinusoidal", "learned", "rotary", "alibi", "relative"]]
TRANSFORMERS = POSITIONS + [["encoder=transformer", "norm_first=false"], ["encoder=transformer", "window=2"]]
SCORES = ["dot", "scaled-dot", "additive", "concat", "bilinear", "low-rank", "gaussian", "cosine"]
WEIGHTINGS = ["sparsemax", "entmax15", "sigmoid", "none", "argmax"]
CASES = (
    [("label", settings) for settings in ENCODERS + TRANSFORMERS + [["characters=true", "encoder=none"], ["characters=true", "character_encoder=gru", "encoder=gru"]]]
    + [("classify", [*settings, "pooling=mean"]) for settings in ENCODERS + TRANSFORMERS[:2]]
    + [("classify", [f"pooling={name}", "encoder=gru"]) for name in ["max", "last", "gate"]]
    + [("classify", ["pooling=last", "encoder=cnn"]), ("classify", ["pooling=class-token", "encoder=transformer"])]
    + [("classify", ["pooling=attention", f"score={name}"]) for name in SCORES]
    + [("classify", ["pooling=attention", f"weighting={name}"]) for name in WEIGHTINGS]
    + [("classify", ["kind=audio"])]
    + [("image", ["pooling=class-token"]), ("image", ["pooling=mean"]), ("image", ["model=cnn"])]
    + [("graph", ["layer=gat"]), ("graph", ["layer=gatv2"]), ("graph", ["layer=mean"]), ("regress", [])]
)


def module_at(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(regard, task, settings):
    """The largest difference by PyTorch and by onnxruntime; a reason in place of what was not written."""
    with tempfile.TemporaryDirectory() as folder:
        run, out = pathlib.Path(folder) / "run", pathlib.Path(folder) / "out"
        sets = [word for setting in settings + SMALL[: 1 if task in ("graph", "regress") else 2] for word in ("--set", setting)]
        subprocess.run([regard, "train", task, "--out", run, *sets], check=True, capture_output=True)
        said = subprocess.run([regard, "export", run, "--out", out], check=True, capture_output=True, text=True).stdout
        numbers = load_file(out / "check.safetensors")
        expected = numbers.pop("output")
        with torch.no_grad():
            answer = module_at(out / "model.py").load()(**{name: torch.tensor(x) for name, x in numbers.items()}).numpy()
        by_onnx = next((line for line in said.splitlines() if line.startswith("no ONNX")), None)
        if (out / "model.onnx").exists():
            session = onnxruntime.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
            by_onnx = difference(session.run(None, numbers)[0], expected, numbers)
        return difference(answer, expected, numbers), by_onnx


def difference(answer, expected, numbers):
    assert answer.shape == expected.shape, (answer.shape, expected.shape)
    apart = np.abs(answer - expected)
    if apart.ndim == 3:  # past a sequence's length labels mean nothing
        apart = apart * (np.arange(apart.shape[1])[None, :, None] < numbers["lengths"][:, None, None])
    return float(apart.max() / max(1, np.abs(expected).max()))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--regard", default=str(pathlib.Path(__file__).parent.parent / "target/release/regard"))
    arguments.add_argument("--filter", default="")
    arguments = arguments.parse_args()
    wrong = 0
    for task, settings in CASES:
        name = f"{task} {' '.join(settings)}"
        if arguments.filter not in name:
            continue
        try:
            by_pytorch, by_onnx = check(arguments.regard, task, settings)
        except subprocess.CalledProcessError as error:
            print(f"{name:60} FAILED {error.stderr}")
            wrong += 1
            continue
        except Exception as error:
            print(f"{name:60} FAILED {type(error).__name__}: {error}")
            wrong += 1
            continue
        bad = any(isinstance(x, float) and not x <= LARGEST_DIFFERENCE for x in (by_pytorch, by_onnx))
        wrong += bad
        onnx = f"{by_onnx:.1e}" if isinstance(by_onnx, float) else by_onnx
        print(f"{name:60} PyTorch {by_pytorch:.1e}  onnxruntime {onnx}{'  WRONG' if bad else ''}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
