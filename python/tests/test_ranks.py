"""Training by several processes: as by one, but for rounding."""

import json
import subprocess
import sys

import numpy as np
import pytest
from processes import finish, run, start

import regard

# No dropout and no augmentation: of those every rank draws its own. Batches whose last ones are small: the shares of
# ranks differ, and one may be empty.
TASKS = {
    "translate": dict(size=203, epochs=3, batch_size=16, hidden=16, embedding=16, score_hidden=16, dropout=0.0),
    "label": dict(epochs=2, hidden=16, embedding=16, dropout=0.0, word_dropout=0.0),
    "classify": dict(epochs=2, dropout=0.0, token_dropout=0.0),
    "graph": dict(epochs=5, dropout=0.0),
    "regress": dict(epochs=5),
}

TRAIN = """
import json, sys
import torch.distributed as dist
import regard
dist.init_process_group("gloo")
for task, options in json.loads(sys.argv[2]).items():
    run = regard.train(task, out=f"{sys.argv[1]}/{task}", progress=False, **options)
    print(run.task)
dist.destroy_process_group()
"""


def known(task):
    """Of the options, those that the task has."""
    from regard import _native

    sections = json.loads(_native.task_options(task, []))
    names = {name for section in sections.values() if isinstance(section, dict) for name in section}
    return {name: value for name, value in TASKS[task].items() if name in names}


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    place = tmp_path_factory.mktemp("together")
    options = {task: known(task) for task in TASKS}
    said = run(TRAIN, 2, place, json.dumps(options))
    assert said[0].split() == said[1].split() == list(TASKS)
    return place


@pytest.mark.parametrize("task", TASKS)
def test_two_processes_with_half_the_batch_end_as_one_with_the_whole(task, together, tmp_path):
    one = regard.train(task, out=tmp_path / "one", progress=False, **known(task))
    two = regard.load(together / task)
    assert list(one.metrics.columns) == list(two.metrics.columns)
    for name in one.metrics.columns:
        if name in ("seconds", "best"):
            continue
        np.testing.assert_allclose(two.metrics[name], one.metrics[name], rtol=1e-5, atol=1e-7, err_msg=name)
    found = dict(two.parameters)
    for name, value in one.parameters.items():
        if name.endswith("in_proj_bias"):
            # Softmax does not see a bias of the keys: its gradient is rounding alone, of which Adam makes whole steps.
            value[len(value) // 3 : 2 * len(value) // 3] = 0
            found[name][len(value) // 3 : 2 * len(value) // 3] = 0
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4, err_msg=name)


STOPPED = """
import sys
import torch.distributed as dist
import regard
dist.init_process_group("gloo")
small = dict(size=203, epochs=3, batch_size=16, hidden=16, embedding=16, score_hidden=16, progress=False)
regard.train("translate", out=sys.argv[1] + "/whole", **small)
regard.train("translate", out=sys.argv[1] + "/parts", callback=lambda row: row["epoch"] < 2, **small)
print(len(regard.load(sys.argv[1] + "/parts").metrics))
regard.train(resume=sys.argv[1] + "/parts", progress=False)
dist.destroy_process_group()
"""


def test_stopped_and_resumed_or_straight_through_all_bits_are_equal(tmp_path):
    assert [said.split() for said in run(STOPPED, 2, tmp_path)] == [["2"], ["2"]]
    for name in ("last.safetensors", "best.safetensors", "metrics.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


DIES = """
import os, sys, threading
import torch.distributed as dist
import regard
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    def die():
        while not os.path.exists(sys.argv[1] + "/best.safetensors"):
            pass
        os._exit(3)
    threading.Thread(target=die, daemon=True).start()
regard.train("translate", out=sys.argv[1], size=500, epochs=200, hidden=16, embedding=16, score_hidden=16, progress=False)
"""

GOES_ON = """
import sys
import torch.distributed as dist
import regard
dist.init_process_group("gloo")
regard.train(resume=sys.argv[1], progress=False, callback=lambda row: False)
dist.destroy_process_group()
"""


def test_a_rank_that_dies_ends_the_others_with_a_sentence_and_resume_goes_on(tmp_path):
    place = tmp_path / "run"
    (_, told, status), (_, _, died) = finish(start(DIES, 2, place), timeout=120)
    assert died == 3 and status == 1
    assert "RuntimeError: rank 0 of 2: another rank has ended or cannot be reached" in told
    epochs = len(regard.load(place).metrics)
    run(GOES_ON, 2, place)
    assert len(regard.load(place).metrics) == epochs + 1


REFUSED = """
import sys
import torch.distributed as dist
import regard
dist.init_process_group("gloo")
for options in ({"hiden": 5}, {"init_from": "nowhere.safetensors"}, {"freeze": ["nothing.*"]}):
    try:
        regard.train("translate", out=sys.argv[1], size=100, progress=False, overwrite=True, **options)
    except (ValueError, FileNotFoundError) as error:
        print(error)
dist.destroy_process_group()
"""


def test_what_rank_0_refuses_all_ranks_refuse(tmp_path):
    said = run(REFUSED, 2, tmp_path / "run")
    assert said[0] == said[1]
    option, file, pattern = said[0].splitlines()
    assert "the nearest is `model.hidden`" in option and "nowhere.safetensors" in file and "nothing.*" in pattern


def test_torchrun_trains_and_resumes_by_the_command(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "regard.torch.train"]
    small = ["size=200", "epochs=2", "hidden=16", "embedding=16", "score_hidden=16"]
    sets = [argument for setting in small for argument in ("--set", setting)]
    place = str(tmp_path / "run")

    def torchrun(*arguments):
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)

    done = torchrun("translate", "--out", place, *sets)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("epoch   2") == 1
    assert len(regard.load(place).metrics) == 2
    done = torchrun("--resume", place, "--set", "epochs=3")
    assert done.returncode == 0, done.stderr
    assert len(regard.load(place).metrics) == 3
    done = torchrun("translate", "--out", place, *sets)
    assert done.returncode != 0 and "holds a run already" in done.stderr


def test_torchrun_without_a_process_group_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="init_process_group"):
        regard.train("translate", out=tmp_path / "run")
