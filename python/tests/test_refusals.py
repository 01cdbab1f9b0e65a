"""Bad input: a Python exception of the right type with one clear sentence."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import regard

Q = np.zeros((2, 4, 5, 8))
T = torch.zeros(2, 4, 5, 8)

CASES = {
    "a wrong rank": (ValueError, "shapes", lambda: regard.attention(Q, Q[0], Q)),
    "a wrong rank of tensors": (ValueError, "shapes", lambda: regard.attention(T[None], T, T)),
    "another width": (ValueError, "head width", lambda: regard.attention(Q, Q[..., :4], Q)),
    "another batch": (ValueError, "batch sizes", lambda: regard.attention(Q, np.zeros((3, 4, 5, 8)), Q)),
    "another batch of tensors": (ValueError, "batch sizes", lambda: regard.attention(T, torch.zeros(3, 4, 5, 8), T)),
    "a mask of other leading axes": (ValueError, "leading axes", lambda: regard.attention(*[Q[None]] * 3, attn_mask=np.zeros((1, 3, 4, 5, 5)))),
    "lengths without the leading axes": (ValueError, "leading axes", lambda: regard.attention(*[Q[None]] * 3, key_lengths=[5, 5])),
    "an unknown layout": (ValueError, "bnhd", lambda: regard.attention(Q, Q, Q, layout="nbhd")),
    "a layout without heads": (ValueError, "bnhd", lambda: regard.attention(Q[0], Q[0], Q[0], layout="bnhd")),
    "a cap of sparsemax": (ValueError, "softcap", lambda: regard.attention(Q, Q, Q, softcap=2.0, normalizer="sparsemax")),
    "a cap of an expression": (ValueError, "softcap", lambda: regard.attention(Q, Q, Q, softcap=2.0, score="sum(q * k)")),
    "a negative cap": (ValueError, "positive", lambda: regard.attention(Q, Q, Q, softcap=-1.0)),
    "sinks of sigmoid": (ValueError, "sinks", lambda: regard.attention(Q, Q, Q, sinks=np.zeros(4), normalizer="sigmoid")),
    "too few sinks": (ValueError, r"\[4\]", lambda: regard.attention(Q, Q, Q, sinks=np.zeros(3))),
    "whole numbers as sinks": (TypeError, "fractions", lambda: regard.attention(Q, Q, Q, sinks=np.zeros(4, int))),
    "sinks of another kind": (TypeError, "array", lambda: regard.attention(Q, Q, Q, sinks=torch.zeros(4))),
    "a backward with sinks": (TypeError, "no sinks", lambda: regard.attention_backward(Q, Q, Q, Q, sinks=np.zeros(4))),
    "heads that do not divide": (ValueError, "multiple", lambda: regard.attention(Q, Q[:, :3], Q[:, :3])),
    "keys without values": (ValueError, "as many rows", lambda: regard.attention(Q, Q, Q[:, :, :3])),
    "whole numbers": (TypeError, "int64", lambda: regard.attention(*[Q.astype(np.int64)] * 3)),
    "complex tensors": (TypeError, "complex64", lambda: regard.attention(*[T.to(torch.complex64)] * 3)),
    "two types": (TypeError, "one type", lambda: regard.attention(Q, Q.astype(np.float32), Q)),
    "two types of tensors": (TypeError, "one type", lambda: regard.attention(T, T.double(), T)),
    "an array among tensors": (TypeError, "key is ndarray", lambda: regard.attention(T, Q, T)),
    "a tensor among arrays": (TypeError, "value is Tensor", lambda: regard.attention(Q, Q, T)),
    "a list": (TypeError, "query is list", lambda: regard.attention([[1.0]], [[1.0]], [[1.0]])),
    "nothing": (TypeError, "query is NoneType", lambda: regard.attention(None, None, None)),
    "byte-swapped numbers": (TypeError, "byte-swapped", lambda: regard.attention(*[Q.astype(">f8")] * 3)),
    "a meta tensor": (TypeError, "meta", lambda: regard.attention(T.to("meta"), T, T)),
    "meta tensors among real ones": (TypeError, "one device", lambda: regard.attention(T, T.to("meta"), T)),
    "a nested tensor": (TypeError, "key_lengths", lambda: regard.attention(*[torch.nested.nested_tensor([T[0], T[1]])] * 3)),
    "a list of tensors": (TypeError, "torch.stack", lambda: regard.attention(T, T, T, key_bias=[torch.tensor(0.0)] * 5)),
    "a sparse tensor": (TypeError, "dense", lambda: regard.attention(T, T.to_sparse(), T)),
    "a mask of numbers that are whole": (TypeError, "fractions", lambda: regard.attention(Q, Q, Q, attn_mask=np.ones((5, 5), int))),
    "a mask that does not fit": (ValueError, "broadcast", lambda: regard.attention(Q, Q, Q, attn_mask=np.ones((5, 6), bool))),
    "a bias that does not fit": (ValueError, "broadcast", lambda: regard.attention(T, T, T, attn_mask=torch.zeros(3, 5, 5))),
    "a tensor mask of whole numbers": (TypeError, "may attend", lambda: regard.attention(T, T, T, attn_mask=torch.ones(5, 5, dtype=torch.int64))),
    "an unknown score": (ValueError, "norm", lambda: regard.attention(Q, Q, Q, score="cosine")),
    "a masked array": (TypeError, "filled", lambda: regard.attention(np.ma.masked_array(Q), Q, Q)),
    "a masked bias": (TypeError, "filled", lambda: regard.attention(Q, Q, Q, attn_mask=np.ma.masked_array(np.zeros((5, 5))))),
    "a word for enable_gqa": (TypeError, "enable_gqa", lambda: regard.attention(Q, Q, Q, enable_gqa="yes")),
    "lengths beyond the keys": (ValueError, "key_lengths", lambda: regard.attention(Q, Q, Q, key_lengths=[5, 6])),
    "negative lengths": (ValueError, "not negative", lambda: regard.attention(Q, Q, Q, key_lengths=[5, -1])),
    "too few lengths": (ValueError, "key_lengths", lambda: regard.attention(Q, Q, Q, key_lengths=[5])),
    "fractions as lengths": (TypeError, "whole", lambda: regard.attention(Q, Q, Q, key_lengths=np.ones(2))),
    "an edge beyond the nodes": (ValueError, "edge", lambda: regard.attention(Q, Q, Q, edges=np.array([[0], [9]]))),
    "a negative edge": (ValueError, "edge", lambda: regard.attention(Q, Q, Q, edges=np.array([[-1], [0]]))),
    "edges of three rows": (ValueError, "edge_index", lambda: regard.attention(Q, Q, Q, edges=np.zeros((3, 2), int))),
    "edges that require a gradient": (TypeError, "gradient", lambda: regard.Edges(torch.zeros(2, 3, requires_grad=True), 5)),
    "fractions as edges": (TypeError, "whole", lambda: regard.Edges(np.zeros((2, 3)), 5)),
    "edges of another graph": (ValueError, "edges join", lambda: regard.attention(Q, Q, Q, edges=regard.Edges(np.zeros((2, 1), int), 4))),
    "an unknown normalizer": (ValueError, "softmin", lambda: regard.attention(Q, Q, Q, normalizer="softmin")),
    "a misspelled function": (ValueError, "tanh", lambda: regard.attention(Q, Q, Q, score="sum(tahn(q))")),
    "a missing parameter": (ValueError, "'w'", lambda: regard.attention(Q, Q, Q, score="w * (q @ k)")),
    "a parameter too many": (ValueError, "'u'", lambda: regard.attention(Q, Q, Q, score=regard.Expression("q @ k", u=1.0))),
    "w transposed": (ValueError, r"\[8, 4\]", lambda: regard.attention(Q, Q, Q, score=regard.Additive(np.zeros((8, 4))))),
    "an additive score without w": (ValueError, "Additive", lambda: regard.attention(Q, Q, Q, score="additive")),
    "dropout of 1": (ValueError, "dropout_p", lambda: regard.attention(Q, Q, Q, dropout_p=1.0)),
    "a negative window": (ValueError, "window", lambda: regard.attention(Q, Q, Q, window=(-2, 0))),
    "an infinite scale": (ValueError, "scale", lambda: regard.attention(Q, Q, Q, scale=float("inf"))),
    "a scale for an expression": (ValueError, "scale", lambda: regard.attention(Q, Q, Q, score="sum(q * k)", scale=2.0)),
    "a word for a truth": (TypeError, "is_causal", lambda: regard.attention(Q, Q, Q, is_causal="yes")),
    "an even table": (ValueError, "relative_bias", lambda: regard.attention(Q, Q, Q, relative_bias=np.zeros((4, 4)))),
    "slopes that learn": (ValueError, "detach", lambda: regard.attention(T, T, T, alibi_slopes=torch.zeros(4, requires_grad=True))),
    "an unknown result": (ValueError, "weights, edge_weights", lambda: regard.attention(Q, Q, Q, return_aux="weigths")),
    "a choice of softmax": (ValueError, "chooses none", lambda: regard.attention(Q, Q, Q, return_aux="index")),
    "an unknown argument": (TypeError, "causal", lambda: regard.attention(Q, Q, Q, causal=True)),
    "a gradient of another shape": (ValueError, "grad_out", lambda: regard.attention_backward(Q[..., :3], Q, Q, Q)),
    "no threads": (ValueError, "threads", lambda: regard.set_num_threads(0)),
    "half a thread": (TypeError, "whole", lambda: regard.set_num_threads(0.5)),
    "parts without lse": (ValueError, "part", lambda: regard.merge_attentions([Q], [])),
    "sparsemax along no axis": (ValueError, "axis", lambda: regard.sparsemax(Q, 7)),
    "an unknown activation": (ValueError, "activation", lambda: regard.attention(Q, Q, Q, score=regard.Additive(np.zeros(8), "rely"))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused(name):
    kind, part, call = CASES[name]
    with pytest.raises(kind, match=part) as caught:
        call()
    sentence = str(caught.value).split("\n")[0]
    assert type(caught.value) is kind and 10 < len(sentence) < 300


def test_tensors_of_other_devices_are_told_where_to_go():
    class OnDevice(torch.Tensor):
        is_cpu = False
        device = torch.device("xpu", 0)

    tensor = torch.Tensor._make_subclass(OnDevice, torch.zeros(1, 1, 2, 2))
    said = r"query is on xpu:0; regard computes on the CPU and on CUDA: give it query.cpu\(\)"
    with pytest.raises(TypeError, match=said):
        regard.attention(tensor, tensor, tensor)


def test_two_thousand_random_calls_end_in_the_formula_s_numbers_or_in_a_sentence():
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, os.path.join(here, "fuzz.py"), "2000", "1"], capture_output=True, text=True, cwd=here
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "2000 calls" in done.stdout
