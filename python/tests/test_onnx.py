"""The operator exported to ONNX: as its formula, evaluated by ONNX's own reference."""

import pytest
import torch

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

import regard  # noqa: E402
import regard.torch  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

MASK = torch.rand(5, 6, generator=torch.Generator().manual_seed(1)) > 0.3
BIAS = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(2))
CALLS = {
    "causal and scale": {"is_causal": True, "scale": 0.3},
    "truths and numbers": {"attn_mask": (MASK, BIAS)},
    "window": {"window": (1, 2), "offset": 1},
    "lengths and distance": {"key_lengths": torch.tensor([0, 4]), "alibi_slopes": torch.tensor([0.5, 0.25, 0.1, 0.0])},
    "segments and places": {
        "segments": (torch.arange(5) // 2, torch.arange(6) // 3),
        "relative_bias": BIAS[:, 0, :5].contiguous(),
    },
    "key bias and sinks": {"key_bias": BIAS[0, 0].contiguous(), "sinks": BIAS[:, 0, 0].contiguous()},
}


class EveryCall(torch.nn.Module):
    def forward(self, q, k, v):
        return tuple(regard.attention(q, k, v, **options) for options in CALLS.values())


def exported(module, inputs, tmp_path, **options):
    path = tmp_path / "module.onnx"
    torch.onnx.export(module, inputs, path, verbose=False, **options)
    model = onnx.load(path)
    names = [one.name for one in model.graph.input]
    return lambda *given: ReferenceEvaluator(model).run(None, dict(zip(names, (x.numpy() for x in given))))


def qkv(batch=2):
    return torch.randn(batch, 4, 5, 8), torch.randn(batch, 2, 6, 8), torch.randn(batch, 2, 6, 7)


def test_every_mask_and_bias_becomes_plain_operations_with_the_same_numbers(tmp_path):
    run = exported(EveryCall(), qkv(), tmp_path, dynamo=True)
    given = qkv()
    found = run(*given)
    assert len(found) == len(CALLS) == 6
    for name, mine, expected in zip(CALLS, found, EveryCall()(*given)):
        torch.testing.assert_close(torch.tensor(mine), expected, msg=lambda text, n=name: f"{n}: {text}")


def test_a_layer_is_exported_with_other_lengths(tmp_path):
    layer = regard.torch.MultiheadAttention(16, 4, batch_first=True).eval()

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x, x, x, need_weights=False)[0]

    sizes = {"x": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}}
    run = exported(Layer(), (torch.randn(2, 5, 16),), tmp_path, dynamo=True, dynamic_shapes=sizes)
    for shape in ((2, 5), (3, 9), (1, 2)):
        x = torch.randn(*shape, 16)
        torch.testing.assert_close(torch.tensor(run(x)[0]), layer(x, x, x)[0].detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"normalizer": "sparsemax"}, {"score": "tanh(q @ k)"}, {"dropout_p": 0.5, "seed": 1}])
def test_what_has_no_form_in_onnx_is_refused_by_name(options, monkeypatch):
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    with pytest.raises(NotImplementedError, match="no form in ONNX"):
        make_fx(lambda q, k, v: regard.attention(q, k, v, **options))(*qkv())
