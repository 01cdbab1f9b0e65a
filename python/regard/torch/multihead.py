"""Multi-head attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import Normalizer, sides
from ..operator import attention


class MultiheadAttention(nn.MultiheadAttention):
    """``torch.nn.MultiheadAttention`` on the fused operator: the same arguments, masks, state dict and
    results, with the weights by the fast kernels and no array of pairs unless they are asked for.

    ``normalizer`` and ``window`` are what ``regard.attention`` calls so.

    >>> import torch, regard.torch
    >>> theirs = torch.nn.MultiheadAttention(8, 2)
    >>> ours = regard.torch.MultiheadAttention(8, 2)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
    >>> x = torch.randn(5, 3, 8)
    >>> torch.allclose(ours(x, x, x)[0], theirs(x, x, x)[0], atol=1e-6)
    True
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        normalizer: Normalizer = "softmax",
        window: Any = None,
    ) -> None:
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        )  # fmt: skip
        self.normalizer: Normalizer = normalizer
        self.window = window
        # `nn.TransformerEncoderLayer` and `nn.TransformerEncoder` ask this, and not for the class, before they go round
        # `forward` to a kernel of their own that knows nothing of a normalizer or a window.
        self._qkv_same_embed_dim = False

    def extra_repr(self) -> str:
        chosen = [f"{self.embed_dim}, {self.num_heads}"]
        usual: dict[str, Any] = {"dropout": 0.0, "batch_first": False, "normalizer": "softmax", "window": None}
        chosen += [f"{name}={getattr(self, name)!r}" for name, one in usual.items() if getattr(self, name) != one]
        return ", ".join(chosen)

    def _reset_parameters(self) -> None:
        asked, self._qkv_same_embed_dim = self._qkv_same_embed_dim, self.in_proj_weight is not None
        super()._reset_parameters()
        self._qkv_same_embed_dim = asked

    def __setstate__(self, state: Any) -> None:
        super().__setstate__({**state, "_qkv_same_embed_dim": False})

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As ``torch.nn.MultiheadAttention.forward``: true in a mask forbids. Nested tensors ``[B, n, E]`` give nested
        ones; they know their own padding and take no mask."""
        if query.is_nested or key.is_nested or value.is_nested:
            return self._of_nested(query, key, value, (key_padding_mask, attn_mask), need_weights, is_causal), None
        batched = query.dim() == 3
        if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
            raise ValueError(
                f"query, key and value have shapes {list(query.shape)}, {list(key.shape)} and {list(value.shape)}; "
                "all three want [N, E], or a batch of these"
            )
        if not batched:
            query, key, value = query[None], key[None], value[None]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = self._projected(query, key, value)
        # Without weights and padding PyTorch counts the keys that it adds among the sequence's, the last of it.
        counted = is_causal and not need_weights and key_padding_mask is None
        mask, key_bias = self._masks(attn_mask, key_padding_mask, is_causal, q.shape[0], k.shape[2])
        window = self.window
        if (self.bias_k is not None or self.add_zero_attn) and not counted:
            mask, is_causal, window = self._placed(mask, is_causal, (q.shape[2], k.shape[2]), q.device), False, None
        k, v, mask, key_bias = self._with_more_keys(k, v, mask, key_bias)
        result = attention(
            q,
            k,
            v,
            attn_mask=mask,
            is_causal=is_causal,
            key_bias=key_bias,
            dropout_p=self.dropout if self.training else 0.0,
            window=window,
            normalizer=self.normalizer,
            return_aux="weights" if need_weights else None,
        )
        out, weights = (result[0], result[1].weights) if need_weights else (result, None)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        if weights is not None:
            weights = weights.to(out.dtype)
            weights = weights.mean(dim=1) if average_attn_weights else weights
        if not batched:
            return out[0], None if weights is None else weights[0]
        return (out if self.batch_first else out.transpose(0, 1)), weights

    def _of_nested(
        self, query: Tensor, key: Tensor, value: Tensor, masks: tuple[Any, Any], need_weights: bool, is_causal: bool
    ) -> Tensor:
        if not (query.is_nested and key.is_nested and value.is_nested):
            raise TypeError("one of query, key and value is nested; either all of them are, or none")
        if not self.batch_first or need_weights or any(mask is not None for mask in masks):
            raise ValueError("nested tensors want batch_first=True, need_weights=False and no mask")
        lengths, keys = ([row.shape[0] for row in x.unbind()] for x in (query, key))
        if keys != [row.shape[0] for row in value.unbind()]:
            raise ValueError("key and value are nested with other lengths; each item wants as many keys as values")
        padded = {id(x): torch.nested.to_padded_tensor(x, 0.0) for x in (query, key, value)}
        places = torch.arange(padded[id(key)].shape[1], device=key.device)
        padding = places[None, :] >= torch.tensor(keys, device=key.device)[:, None]
        out, _ = self.forward(
            padded[id(query)], padded[id(key)], padded[id(value)], padding, need_weights=False, is_causal=is_causal
        )
        rows = [row[:length] for row, length in zip(out, lengths)]
        if query.layout is torch.jagged:
            # With the offsets of the query, so that both can be added.
            jagged: Any = query
            return torch.nested.nested_tensor_from_jagged(torch.cat(rows), offsets=jagged.offsets())
        return torch.nested.as_nested_tensor(rows)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, H, N, D] each."""
        b = self.in_proj_bias
        packed = self.in_proj_weight is not None
        if packed and query is key and key is value:
            parts = F.linear(query, self.in_proj_weight, b).chunk(3, dim=-1)
        else:
            if packed:
                weights = self.in_proj_weight.chunk(3)
            else:
                weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            biases = (None, None, None) if b is None else b.chunk(3)
            parts = tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
        q, k, v = (x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in parts)
        return q, k, v

    def _masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool, batch: int, keys: int
    ) -> tuple[Tensor | None, Tensor | None]:
        mask = None
        # `is_causal` says that the mask is the causal one: then it need not be read, unless it learns.
        if attn_mask is not None and (not is_causal or attn_mask.requires_grad):
            mask = attn_mask.logical_not() if attn_mask.dtype is torch.bool else attn_mask
            if mask.dim() == 3:
                if mask.shape[0] != batch * self.num_heads:
                    wanted = f"[B · H, Nq, Nk], here {batch} · {self.num_heads} of them"
                    raise ValueError(f"attn_mask has shape {list(mask.shape)}; it wants [Nq, Nk] or {wanted}")
                mask = mask.unflatten(0, (batch, self.num_heads))
        key_bias = key_padding_mask
        if key_bias is not None and not (key_bias.dtype is torch.bool or key_bias.is_floating_point()):
            raise TypeError(f"key_padding_mask is {key_bias.dtype}; it wants truths (true: is padding), or fractions")
        if key_bias is not None and tuple(key_bias.shape) != (batch, keys):
            raise ValueError(f"key_padding_mask has shape {list(key_bias.shape)}; [B, Nk] is [{batch}, {keys}]")
        if key_bias is not None and key_bias.dtype is torch.bool:
            zeros = torch.zeros(key_bias.shape, dtype=self.out_proj.weight.dtype, device=key_bias.device)
            key_bias = zeros.masked_fill(key_bias, float("-inf"))
        return mask, key_bias

    def _placed(self, mask: Tensor | None, is_causal: bool, size: tuple[int, int], device: Any) -> Any:
        """The mask with what the places of queries and keys say: the keys that are added have no place."""
        distance = torch.arange(size[1], device=device)[None, :] - torch.arange(size[0], device=device)[:, None]
        seen = distance <= 0 if is_causal else None
        window = sides(self.window)
        if window is not None:
            left, right = window
            near = (distance >= -left) & (distance <= right)
            seen = near if seen is None else seen & near
        if seen is None or mask is None:
            return mask if seen is None else seen
        return mask & seen if mask.dtype is torch.bool else mask.masked_fill(~seen, float("-inf"))

    def _with_more_keys(
        self, k: Tensor, v: Tensor, mask: Tensor | None, key_bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """With the learned key and value of ``add_bias_kv``, and that of ``add_zero_attn``, which is zero."""
        more = 0
        if self.bias_k is not None and self.bias_v is not None:
            rows = (x.reshape(1, 1, self.num_heads, self.head_dim).transpose(1, 2) for x in (self.bias_k, self.bias_v))
            k, v = (torch.cat([x, row.expand(x.shape[0], -1, -1, -1)], dim=2) for x, row in zip((k, v), rows))
            more += 1
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
            more += 1
        if more and mask is not None:
            mask = F.pad(mask, (0, more), value=mask.dtype is torch.bool)
        if more and key_bias is not None:
            key_bias = F.pad(key_bias, (0, more))
        return k, v, mask, key_bias


class SlidingWindowAttention(MultiheadAttention):
    """Multi-head self-attention over near positions only: the work grows with length times window.

    ``window`` is a number of positions to both sides, or ``(left, right)``. The state dict is that of
    ``torch.nn.MultiheadAttention``; sequences are ``[B, N, E]`` or ``[N, E]``.

    >>> import torch, regard.torch
    >>> attention = regard.torch.SlidingWindowAttention(8, 2, window=(3, 0))
    >>> attention(torch.zeros(2, 10, 8)).shape
    torch.Size([2, 10, 8])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        window: Any,
        dropout: float = 0.0,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        normalizer: Normalizer = "softmax",
    ) -> None:
        super().__init__(
            embed_dim, num_heads, dropout, bias, batch_first=True, device=device, dtype=dtype,
            normalizer=normalizer, window=window,
        )  # fmt: skip

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """``[B, N, E]`` gives ``[B, N, E]``; true in ``key_padding_mask`` ``[B, N]`` is padding."""
        out, _ = super().forward(x, x, x, key_padding_mask, need_weights=False)
        return out
