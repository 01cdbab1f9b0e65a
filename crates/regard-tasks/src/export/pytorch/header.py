import ast
import json
import math
import pathlib
import re
import sys

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

CONFIG = json.loads(r"""
{config}
""")


def keep(lengths, n):
    """True where there is a vector: [B, n]."""
    return torch.arange(n)[None, :] < lengths[:, None]


def activate(x, name):
    """Functions by the names of the configuration: "gelu", "elu(0.5)"."""
    name, _, number = name.rstrip(")").partition("(")
    if name in ("elu", "leaky-relu"):
        function, usual = {"elu": (F.elu, 1.0), "leaky-relu": (F.leaky_relu, 0.2)}[name]
        return function(x, float(number or usual))
    if name == "gelu-tanh":
        return F.gelu(x, approximate="tanh")
    return {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": F.silu, "exp": torch.exp, "identity": lambda x: x}[name](x)


def sinusoids(n, width):
    places, features = torch.arange(n)[:, None].double(), torch.arange(width)[None, :]
    angles = places / 10000 ** ((features // 2 * 2).double() / width)
    return torch.where(features % 2 == 0, angles.sin(), angles.cos()).float()
