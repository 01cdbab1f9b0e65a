"""A run's model in PyTorch: the same answers, and gradients for every parameter."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import regard

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

QUICK = {"epochs": 1, "progress": False}
SMALL = {
    "regress": {"epochs": 5, "size": 50},
    "translate": {"size": 60, "hidden": 16, "embedding": 16, "score_hidden": 16},
    "summarize": {"size": 60, "hidden": 16, "embedding": 16, "score_hidden": 16},
    "transcribe": {"size": 20, "hidden": 16, "score_hidden": 16},
    "caption": {"size": 20, "hidden": 16, "score_hidden": 16},
    "draw": {"size": 20},
    "answer": {"size": 60, "embedding": 16},
    "label": {"size": 60, "hidden": 16, "embedding": 16},
    "classify": {"size": 60},
    "image": {"size": 40},
    "graph": {},
}


def test_no_task_is_left_out():
    assert set(SMALL) == set(regard.tasks())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    return lambda task, **more: regard.train(task, out=place / task, **{**QUICK, **SMALL[task], **more})


@pytest.mark.parametrize("task", SMALL)
def test_every_task_has_a_module_whose_parameters_are_the_runs_and_all_learn(task, runs):
    run = runs(task)
    module = run.to_torch()  # which is compared with what the run's model answers, or refused
    assert isinstance(module, torch.nn.Module) and not module.training
    state = module.state_dict()
    tensors = run.parameters.tensors()
    assert set(state) == set(tensors) == set(run.parameters)
    for name, x in tensors.items():
        assert torch.equal(state[name], x) and x.dtype == torch.float32, name
    output = module.train()(**module.example_inputs)
    assert torch.equal(output, module.eval()(**module.example_inputs)), "it has no dropout"
    output.square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), name


def test_a_classifier_of_vectors_gives_the_runs_probabilities(tmp_path):
    random = np.random.default_rng(0)
    sets = [random.normal(size=(random.integers(1, 6), 3)) for _ in range(40)]
    run = regard.train("classify", (sets, np.arange(40) % 3), out=tmp_path / "run", **{**QUICK, "epochs": 3})
    senses = json.loads(Path(run.folder, "vocabulary.json").read_text())["senses"]["vectors"]
    x = torch.zeros(40, 5, 3)
    for at, one in enumerate(sets):
        x[at, : len(one)] = torch.tensor((one - senses["mean"]) / senses["deviation"])
    lengths = torch.tensor([len(one) for one in sets])
    found = run.to_torch()(x, lengths).softmax(-1).detach()
    np.testing.assert_allclose(found, run.predict_proba(sets), atol=1e-5)


def test_a_regression_gives_the_runs_numbers_and_trains_on(tmp_path):
    random = np.random.default_rng(0)
    points = random.normal(size=(60, 2))
    targets = np.sin(points).sum(1)
    run = regard.train("regress", (points, targets), out=tmp_path / "run", **QUICK)
    known = json.loads(Path(run.folder, "vocabulary.json").read_text())
    x = torch.tensor((points - known["mean"]) / known["deviation"]).float()
    module = run.to_torch()
    expected = [float(answer.output) for answer in run.predict(points)]
    np.testing.assert_allclose(module(x)[:, 0].detach(), expected, atol=2e-5)
    optimizer = torch.optim.Adam(module.parameters(), 0.05)
    losses = []
    for _ in range(20):
        loss = (module(x)[:, 0] - torch.tensor(targets)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    # What was learned there goes back.
    run.parameters.update(module.state_dict())
    expected = [float(answer.output) for answer in run.predict(points)]
    np.testing.assert_allclose(module(x)[:, 0].detach(), expected, atol=2e-5)


def test_a_module_is_of_the_parameters_as_they_are_and_can_be_copied(runs):
    run = runs("regress", overwrite=True)
    name = "values"
    run.parameters[name] = run.parameters[name] * 2 + 1
    module = copy.deepcopy(run.to_torch())
    assert torch.equal(module.state_dict()[name], run.parameters.tensors()[name])
    assert module(**module.example_inputs).isfinite().all()


def test_what_is_no_network_is_refused_with_its_reason(tmp_path):
    run = regard.train("regress", model="mean", out=tmp_path / "run", **QUICK)
    with pytest.raises(ValueError, match="the run has no module of PyTorch: .*the mean of all is no network"):
        run.to_torch()
