"""Every model folder of `transformers` on the operator, beside eager and sdpa.

    python sweep.py [FOLDER …]      one line of JSON for each folder

A folder's model is `equal`, `refused` (in words of ours), `without` (nothing in it attends through the interface, and
nothing of it asked for a mask), `unbuilt` (no small one could be built or fed: why), `unsteady` (eager and sdpa, by
rounding alone, are as far from each other as from ours), or `different`, which is a defect.
"""

import contextlib
import copy
import io
import json
import logging
import sys
import traceback
import warnings

import torch
from small_models import folders, inputs, kinds, smaller, spread

import regard.transformers
from regard.transformers import Refused

regard.transformers.register()
CALLS = []
#: Of the largest number; what a leaked key changes is a hundred times as much.
TOLERANCE = 5e-4


def counted(real):
    def function(*arguments, **options):
        CALLS.append(1)
        return real(*arguments, **options)

    return function


def count_calls():
    from transformers import AttentionInterface

    for name in regard.transformers.NAMES:
        AttentionInterface.register(name, counted(AttentionInterface._global_mapping[name]))


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x] if x.is_floating_point() else []
    if isinstance(x, dict):
        # A cache is no output.
        return [t for name, part in x.items() if "past" not in name and "mems" not in name for t in tensors(part)]
    if isinstance(x, (list, tuple)):
        return [t for part in x for t in tensors(part)]
    return []


def seen(x, mask):
    """What stands at real positions; padding attends to whatever it likes."""
    if x.dim() == 3 and x.shape[0] == mask.shape[0] and x.shape[1] == mask.shape[1] + 1:
        # A token of the model's own at the end.
        mask = torch.nn.functional.pad(mask, (0, 1), value=1)
    return x[mask.bool()] if x.dim() >= 2 and tuple(x.shape[:2]) == tuple(mask.shape) else x


def distance(ours, theirs, mask):
    """The largest difference, as a share of the largest number."""
    if len(ours) != len(theirs):
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            return float("inf")
        a, b = seen(a, mask), seen(b, mask)
        if a.numel() == 0:
            continue
        both = torch.isfinite(a) & torch.isfinite(b)
        if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
            return float("inf")
        if both.any():
            top = b[both].abs().max().item() or 1.0
            worst = max(worst, (a[both] - b[both]).abs().max().item() / top)
    return worst


def made(kind, config, attention, state=None):
    """A model in float32 (eager gives NaN in float64 where a row sees nothing), the same weights for every
    implementation."""
    torch.manual_seed(1)
    # A copy: the implementation is written into the configuration.
    model = kind._from_config(copy.deepcopy(config), attn_implementation=attention).float()
    if state is None:
        return spread(model)
    model.load_state_dict(state)
    return model


def outputs(model, given):
    torch.manual_seed(9)
    dtype = next(model.parameters()).dtype
    given = {name: x.to(dtype) if x.is_floating_point() else x for name, x in given.items()}
    return tensors(dict(model(**given).items()))


def feed(model):
    """The first candidate that the eager model takes."""
    model.eval()
    candidates, mask = inputs(model, "none")
    reasons = ["no inputs known"]
    for number, given in enumerate(candidates):
        try:
            with torch.no_grad():
                found = outputs(model, given)
            if found and all(torch.isfinite(x).any() for x in found):
                return number, mask
            reasons.append("nothing finite")
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}")
    raise LookupError(reasons[1] if len(reasons) > 1 else reasons[0])


def compared(kind, config, eager, ours, number):
    """The distances by case: of float32, and of float64 where rounding may have grown to a difference; sdpa is asked
    where eager differs, since some models have another eager."""
    found = cases(kind, config, eager, ours, number)
    if max(found.values()) > TOLERANCE:
        with contextlib.suppress(Exception):
            wide = cases(kind, config, eager.double(), ours.double(), number)
            found |= {name: min(far, wide.get(name, far)) for name, far in found.items()}
    return found


def cases(kind, config, eager, ours, number):
    found = {}
    for padding in ("none", "right", "left"):
        candidates, mask = inputs(eager, padding)
        found[f"{padding}, eval"] = nearest(kind, config, eager, ours, candidates[number], mask, evaluated)
    candidates, mask = inputs(eager, "right")
    with contextlib.suppress(NotImplementedError):
        found["right, train"] = nearest(kind, config, eager, ours, candidates[number], mask, trained)
    if writes_the_same(eager, ours, number) is False:
        found["generated"] = float("inf")
    return found


def nearest(kind, config, eager, ours, given, mask, measured):
    theirs, mine = measured(eager, given, mask), measured(ours, given, mask)
    far = distance(mine, theirs, mask)
    if far > TOLERANCE:
        with contextlib.suppress(Exception):
            sdpa = made(kind, config, "sdpa", eager.state_dict()).to(next(eager.parameters()).dtype)
            far = min(far, distance(mine, measured(sdpa, given, mask), mask))
    return far


def apart(kind, config, eager, number, case):
    """How far eager and sdpa are from each other."""
    padding, _, mode = case.partition(", ")
    with contextlib.suppress(Exception):
        candidates, mask = inputs(eager, padding)
        sdpa = made(kind, config, "sdpa", eager.state_dict())
        measured = trained if mode == "train" else evaluated
        return distance(*(measured(m, candidates[number], mask) for m in (sdpa, eager)), mask)
    return 0.0


def evaluated(model, given, mask):
    with torch.no_grad():
        return outputs(model.eval(), given)


def trained(model, given, mask):
    """The gradients of all parameters as one: some are zero but for rounding."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    try:
        loss = sum(seen(x, mask).square().mean() for x in outputs(model.train(), given) if x.requires_grad)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
    except Refused:
        raise
    except Exception as error:
        if model.config._attn_implementation == "eager":
            raise NotImplementedError from error
        raise
    return [torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(found, parameters)])]


def writes_the_same(eager, ours, number):
    """Whether both write the same with a cache and left padding; none where eager cannot."""
    if not eager.can_generate() or eager.main_input_name != "input_ids" or eager.config.is_encoder_decoder:
        return None
    given = inputs(eager, "left")[0][number]
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False, "pad_token_id": 0}
    options |= {k: given[k] for k in ("input_ids", "attention_mask") if k in given}
    try:
        with torch.no_grad():
            theirs = eager.eval().generate(**options)
    except Exception:
        return None
    with torch.no_grad():
        return torch.equal(ours.eval().generate(**options), theirs)


def one(kind, config):
    try:
        eager = made(kind, config, "eager")
        if sum(p.numel() for p in eager.parameters()) > 30_000_000:
            raise LookupError("stays large")
        number, _ = feed(eager)
    except Refused:
        raise
    except Exception as error:
        text = str(error).splitlines()[0][:160] if str(error) else ""
        return {"outcome": "unbuilt", "why": text if isinstance(error, LookupError) else f"{type(error).__name__}: {text}"}
    CALLS.clear()
    try:
        ours = made(kind, config, "regard", eager.state_dict())
        found = compared(kind, config, eager, ours, number)
    except Refused as error:
        return {"outcome": "refused", "why": str(error)}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {"outcome": "different", "why": f"{type(error).__name__}: {error}"[:300], "at": f"{where.filename[-60:]}:{where.lineno}"}
    worst = max(found, key=lambda name: found[name])
    if not found[worst] <= TOLERANCE and found[worst] <= 2 * apart(kind, config, eager.float(), number, worst):
        return {"outcome": "unsteady", "why": f"{worst}: {found[worst]:.2g}"}
    if not found[worst] <= TOLERANCE:
        return {"outcome": "different", "why": f"{worst}: {found[worst]:.2g}", "calls": len(CALLS), "all": found}
    return {"outcome": "equal" if CALLS else "without", "worst": found[worst], "cases": len(found)}


def folder_results(folder):
    try:
        found = kinds(folder)
    except Exception as error:
        return [{"folder": folder, "model": None, "outcome": "unbuilt", "why": f"{type(error).__name__}: {str(error)[:120]}"}]
    results = []
    for config_class, models in found.items():
        last = None
        for kind in models[:3]:
            try:
                config = config_class(**smaller(config_class()))
            except Exception as error:
                last = {"outcome": "unbuilt", "why": f"config {type(error).__name__}: {str(error).splitlines()[0][:120]}"}
                break
            last = {"model": kind.__name__, **one(kind, config)}
            if last["outcome"] != "unbuilt":
                break
        if last is not None:
            results.append({"folder": folder, **last})
    return results


def quiet():
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)


if __name__ == "__main__":
    quiet()
    count_calls()
    for folder in sys.argv[1:] or folders():
        hidden = io.StringIO()
        with contextlib.redirect_stderr(hidden):
            found = folder_results(folder)
        for result in found:
            print(json.dumps(result), flush=True)
