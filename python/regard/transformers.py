"""The operator behind Hugging Face's models.

>>> import regard.transformers
>>> regard.transformers.register()
>>> from transformers import BertConfig, BertModel
>>> tiny = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=9)
>>> model = BertModel._from_config(tiny, attn_implementation="regard")

A model that computes attention by code of its own, and not through transformers' attention interface, is refused
when it is loaded: the operator would never be called, and code that *adds* its mask to the scores would be given
truths. Such a model is right with ``attn_implementation="eager"``; in a model of several parts each part can have
its own: ``attn_implementation={"text_config": "regard", "vision_config": "eager"}``.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import weakref
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from . import _band
from .operator import attention

#: The names under which models ask for the operator.
NAMES = ("regard", "regard_weights")
#: Tensors that come along and change nothing: the mask already says what they mean.
_KNOWN = ("position_ids", "cache_position", "num_items_in_batch", "labels")


class Refused(ValueError):
    """A model, or something that a model hands over, that the operator cannot serve.

    >>> import regard.transformers
    >>> from transformers import BloomConfig, BloomModel
    >>> regard.transformers.register()
    >>> tiny = BloomConfig(hidden_size=8, n_layer=1, n_head=2, vocab_size=9)
    >>> BloomModel._from_config(tiny, attn_implementation="regard")
    Traceback (most recent call last):
    regard.transformers.Refused: BloomModel computes attention by code of its own, not through transformers' \
attention interface; load it with attn_implementation='eager'
    """


def register() -> None:
    """Makes ``attn_implementation="regard"`` known, and ``"regard_weights"``, which always returns the weights
    (for ``output_attentions``: some models do not tell the kernels when to give them)."""
    for name, function in zip(NAMES, (_forward, _forward_with_weights)):
        AttentionInterface.register(name, function)
        # Without it padding would be ignored in silence.
        AttentionMaskInterface.register(name, _model_mask)
    _check_models_when_loaded()


def _check_models_when_loaded() -> None:
    # transformers accepts every registered name for every model, and has no place to object.
    real = PreTrainedModel.get_correct_attn_implementation
    if getattr(real, "asks_regard", False):
        return

    @functools.wraps(real)
    def checked(self: Any, requested_attention: str | None, *more: Any, **options: Any) -> Any:
        kind: Any = type(self)
        why = _reason_against(kind) if requested_attention in NAMES else None
        if why is not None:
            raise Refused(f"{kind.__name__} {why}; load it with attn_implementation='eager'")
        _remember(self.config, kind)
        if requested_attention in NAMES and not kind._supports_sdpa:
            _BY_MASK_ALONE.update((type(self.config), *(base.__module__ for base in _models_of(kind))))
        return real(self, requested_attention, *more, **options)

    setattr(checked, "asks_regard", True)
    setattr(PreTrainedModel, "get_correct_attn_implementation", checked)


#: Models that were not written for sdpa, by their configurations and modules: there `is_causal` says nothing, and a mask
#: must never be left out for it.
_BY_MASK_ALONE: set[Any] = set()
#: By the identity of a configuration, as long as it lives: the models that were made of it.
_MADE_OF: dict[int, tuple[Any, set[Any]]] = {}
_OWN_CODE = "computes attention by code of its own, not through transformers' attention interface"
_UNREADABLE = (
    "has a source that cannot be read, and does not say itself whether it attends through transformers' attention interface: "
    "where it does, write _supports_sdpa = True into the class"
)
_NOT_DECLARED = "says that it supports no other attention (_supports_sdpa and _supports_attention_backend are false)"


@functools.cache
def _reason_against(kind: Any) -> str | None:
    """Why a model cannot have the operator: it attends, and not, or not everywhere, through the interface. What it
    inherits attends as well, wherever that is written."""
    attends = False
    for base in _models_of(kind):
        code = _source(base)
        if code is None:
            if not ("_supports_sdpa" in vars(base) or "_supports_attention_backend" in vars(base)):
                return _UNREADABLE
            attends = True
            continue
        here = re.search(r"^class \w*(Attention|Attn)\w*\(", code, re.MULTILINE) is not None
        if here and _is_own_code(code, base.__module__.startswith("transformers.")):
            return _OWN_CODE
        attends = attends or here
    # Where nothing attends there is nothing to refuse: the convolutions of a detector, a state-space model.
    return _NOT_DECLARED if attends and not (kind._supports_sdpa or kind._supports_attention_backend) else None


def _models_of(kind: Any) -> list[Any]:
    """A model's class and the models that it inherits from; what every model has is none."""
    of_all = PreTrainedModel.__module__
    return [base for base in kind.__mro__ if issubclass(base, PreTrainedModel) and base.__module__ != of_all]


def _source(kind: Any) -> str | None:
    """The file that a class is written in, or the class alone; none where nobody can read it."""
    places: list[Any] = [sys.modules.get(kind.__module__), kind]
    for thing in places:
        try:
            return inspect.getsource(thing)
        except (OSError, TypeError):
            pass
    return None


def _is_own_code(code: str, is_library: bool) -> bool:
    """Whether what attends in a file goes round the interface."""
    # Classes of attention by the name of an implementation: they have none by ours.
    if re.search(r"ATTENTION\w*\[[^\]]*_attn_implementation", code):
        return True
    if re.search(r"ALL_ATTENTION_FUNCTIONS(\.get_interface\(|\[)", code):
        return False
    # One of the library's that inherits its attention calls what is inherited; elsewhere `forward` may be anything.
    return not is_library or re.search(r"^class \w*Attention\w*\(nn\.Module\):", code, re.MULTILINE) is not None


@functools.cache
def _models_with(config_class: Any) -> tuple[Any, ...]:
    """The models that a configuration is written for, where it is not known which was made of it."""
    room = config_class.__module__.rpartition(".")[0]
    found = [model for model in _below(PreTrainedModel) if getattr(model, "config_class", None) is config_class]
    return tuple([model for model in found if model.__module__.rpartition(".")[0] == room] or found)


def _below(kind: Any) -> list[Any]:
    found = list(kind.__subclasses__())
    return found + [each for one in found for each in _below(one)]


def _remember(config: Any, kind: Any) -> None:
    key = id(config)
    if key not in _MADE_OF:
        _MADE_OF[key] = weakref.ref(config, lambda _: _MADE_OF.pop(key, None)), set()
    _MADE_OF[key][1].add(kind)


def _check_config(config: Any) -> None:
    """``model.config._attn_implementation = "regard"`` after loading asks nobody, and comes here first."""
    if config is None:
        return
    known = _MADE_OF.get(id(config))
    config_class: Any = type(config)
    for kind in _models_with(config_class) if known is None else known[1]:
        why = _reason_against(kind)
        if why is not None:
            raise Refused(f"{kind.__name__} {why}; load it with attn_implementation='eager'")


def _model_mask(*, config: Any = None, allow_is_causal_skip: bool = True, **options: Any) -> Tensor | None:
    """As ``sdpa_mask``: truths, or none where "causal" says all; not written out where a window and padding say all."""
    _check_config(config)
    band = _band.of_model(**options)
    if band is not None:
        return band
    # Layers that share keys may be given the last queries alone, whose places "causal" does not tell.
    skip = allow_is_causal_skip and type(config) not in _BY_MASK_ALONE
    skip = skip and not getattr(config, "num_kv_shared_layers", None)
    mask: Tensor | None = sdpa_mask(**{**options, "config": config, "allow_is_causal_skip": skip})
    return mask


def _pairs(mask: Tensor | None, query: Tensor, key: Tensor) -> tuple[dict[str, Any], Tensor | None]:
    """A mask as options of ``attention``, and what of it holds an entry for each pair."""
    if not isinstance(mask, _band.Band):
        return {}, mask
    if torch.compiler.is_compiling():
        return {}, mask.clone()
    # Layers may attend with fewer queries, or one batch for all, than the mask was made for: then it is read as in eager code.
    is_whole = mask.shape == (query.shape[0], 1, query.shape[2], key.shape[2])
    found = mask.options() if is_whole else None
    if found is None:
        return {}, mask.written()
    return {name: x for name, x in found.items() if name != "attn_mask"}, found.get("attn_mask")


def _mask(attention_mask: Tensor | None, position_bias: Tensor | None) -> Any:
    if position_bias is None or attention_mask is None:
        return attention_mask if position_bias is None else position_bias
    if attention_mask.dtype is torch.bool:
        return attention_mask, position_bias
    return attention_mask + position_bias


def _check_more(more: dict[str, Any]) -> None:
    """A tensor that nobody reads may be a bias, a choice of keys, the bounds of sequences: never dropped."""
    for name, x in more.items():
        if isinstance(x, Tensor) and name not in _KNOWN:
            raise Refused(f"attn_implementation='regard' does not know {name}; use 'eager' for this model")


def _forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    sinks: Tensor | None = None,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    _check_more(more)
    if is_causal is None:
        by_mask_alone = type(module).__module__ in _BY_MASK_ALONE
        is_causal = not by_mask_alone and bool(getattr(module, "is_causal", True))
    # One query is the last of its sequence; a mask that is there says all.
    band, mask = _pairs(attention_mask, query, key)
    by_position: dict[str, Any] = band or {"is_causal": query.shape[2] > 1 and attention_mask is None and is_causal}
    sink = s_aux if sinks is None else sinks
    wanted = bool(more.get("output_attentions"))
    result: Any = attention(
        query,
        key,
        value,
        attn_mask=_mask(mask, position_bias),
        scale=scaling,
        dropout_p=dropout,
        softcap=softcap,
        sinks=None if sink is None else sink.flatten(),
        return_aux="weights" if wanted else None,
        **by_position,
    )
    out, weights = (result[0], result[1].weights) if wanted else (result, None)
    return out.transpose(1, 2).contiguous(), None if weights is None else weights.to(query.dtype)


def _forward_with_weights(*arguments: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    return _forward(*arguments, **{**options, "output_attentions": True})
