"""Weights as pages: what a page holds are the weights that were given, under their names."""

import base64
import json
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import regard
from regard.scene import Scene

WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 4))


def held(page):
    """The weights that a page's script reads, in 16 bits each: NaN where it has none, -1 where one is hidden."""
    text = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.html, re.DOTALL).group(1)
    data = json.loads(text)
    steps = np.stack([np.frombuffer(base64.b64decode(one), "<u2") for one in data["weights"]]).astype(float)
    numbers = data["low"] + steps / 65533 * (data["high"] - data["low"])
    numbers = np.where(steps == 65535, np.nan, np.where(steps == 65534, -1, numbers))
    return data, numbers.reshape(len(data["names"]), len(data["rows"]), len(data["columns"]))


class Frame(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_a_page_holds_the_weights_that_were_given_under_their_names():
    page = regard.show(WEIGHTS, list("abcd"), [1, 2, 3, 4, 5], title="three heads of two layers")
    data, numbers = held(page)
    assert data["rows"] == list("abcd") and data["columns"] == list("12345")
    assert data["names"] == [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3)]
    np.testing.assert_allclose(numbers, WEIGHTS.reshape(6, 4, 5), atol=1e-4)
    assert "three heads of two layers" in page.html and "three heads of two layers" in page.svg


def test_lists_and_tensors_of_any_type_are_the_same_weights():
    torch = pytest.importorskip("torch")
    half = (WEIGHTS[0, 0] * 64).round() / 64
    for given in (half.tolist(), torch.tensor(half), torch.tensor(half, dtype=torch.bfloat16, requires_grad=True)):
        data, numbers = held(regard.show(given))
        assert data["names"] == ["weights"] and data["rows"] == list("1234")
        np.testing.assert_allclose(numbers[0], half, atol=1e-4)
    assert held(regard.show(WEIGHTS[0]))[0]["names"] == ["head 1", "head 2", "head 3"]


def test_weights_that_are_negative_missing_or_masked_are_drawn_as_such():
    given = np.array([[-1.0, 2.0], [np.nan, 0.5]])
    np.testing.assert_allclose(held(regard.show(given))[1][0], given, atol=1e-4)
    hidden = np.ma.array([[0.5, 0.5], [0.0, 1.0]], mask=[[False, False], [True, False]])
    np.testing.assert_allclose(held(regard.show(hidden))[1][0], [[0.5, 0.5], [-1, 1.0]], atol=1e-4)


REFUSED = [
    ([1, 2], {}, "weights has shape [2]; it wants [Nq, Nk]"),
    (np.zeros((0, 3)), {}, "weights has shape [0, 3]"),
    ([[1], [2, 3]], {}, "a list of unequal rows"),
    ([["a"]], {}, "weights is <U1; it wants numbers"),
    (1j * np.ones((2, 2)), {}, "weights is complex128; it wants numbers"),
    (np.zeros((2, 2001)), {}, "weights is 2 × 2001; a picture has 2000 × 2000 at most"),
    (WEIGHTS[0], {"rows": ["a"]}, "rows has 1 names; weights [3, 4, 5] have 4 rows"),
    (WEIGHTS[0], {"columns": list("abcd")}, "columns has 4 names; weights [3, 4, 5] have 5 columns"),
    (WEIGHTS[0], {"rows": "abcd"}, "rows is a text; it wants a list of names"),
    (WEIGHTS[0], {"title": 3}, "title is int; it wants a text"),
]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_picture_is_refused_in_a_sentence(case):
    weights, more, said = case
    with pytest.raises((TypeError, ValueError)) as refused:
        regard.show(weights, **more)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_page_is_saved_as_what_its_path_ends_in(tmp_path):
    page = regard.show(WEIGHTS, list("abcd"))
    for name, begins in {
        "page.html": b"<!DOCTYPE html>", "PAGE.HTM": b"<!DOCTYPE html>", "page.svg": b"<svg", "page.png": b"\x89PNG",
        "page.gif": b"GIF89a",
    }.items():  # fmt: skip
        page.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins), name
    for name in ("page", "page.svg.gz", "page.pdf"):
        with pytest.raises(ValueError, match=r"saved as \.html, its picture as \.svg, \.png or \.gif"):
            page.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    with pytest.raises(ValueError):
        regard.show([[1.0]]).save(tmp_path / "one.gif")
    assert not (tmp_path / "one.gif").exists()


def test_a_page_stands_in_a_frame_that_reaches_nothing_of_the_notebook():
    page = regard.show(WEIGHTS[0], ['"></iframe><script>alert(1)</script>', "b", "c", "d"])
    frame = Frame(page._repr_html_())
    # Whatever a label says, one tag, and the whole page is one of its attributes.
    assert [tag for tag, _ in frame.tags] == ["iframe"]
    (_, attributes), = frame.tags
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == page.html
    # In a sandbox of another origin these raise.
    assert not re.search(r"localStorage|sessionStorage|indexedDB|document\.cookie|window\.(parent|top)\b", page.html)


def test_a_pickled_page_has_its_picture_still(tmp_path):
    page = regard.show(WEIGHTS)
    again = pickle.loads(pickle.dumps(page))
    assert (again.html, again.svg) == (page.html, page.svg)
    again.save(tmp_path / "page.png")
    with pytest.raises(ValueError, match="out of a pickle"):
        again.save(tmp_path / "page.gif")


def test_a_scene_draws_the_weights_that_it_has_now(tmp_path):
    labels = {"maps": ["head 1", "head 2", "head 3"], "rows": list("abcd"), "columns": list("vwxyz")}
    scene = Scene("alignment", WEIGHTS[0].copy(), labels, {"mask": WEIGHTS[0] > 0.01})
    expected = np.where(WEIGHTS[0] > 0.01, WEIGHTS[0], -1)
    assert (expected == -1).any()
    np.testing.assert_allclose(held(scene.page())[1], expected, atol=1e-4)
    assert "alignment" in scene.page().svg
    run = regard.train("image", out=tmp_path / "run", epochs=1, size=40, progress=False)
    (scene, *_) = run.attention("validation:0").values()
    (tag, attributes), *_ = Frame(scene._repr_html_()).tags
    assert tag == "iframe" and attributes["srcdoc"] == scene.page().html
    before = scene.page().svg
    scene.weights[...] = scene.weights[..., ::-1].copy()
    assert scene.page().svg != before
    scene.save(tmp_path / "scene.png")
    assert (tmp_path / "scene.png").read_bytes()[1:4] == b"PNG"
    # Only the run knows what its picture looks like besides the weights.
    alone = pickle.loads(pickle.dumps(scene))
    assert alone._repr_html_() is None
    with pytest.raises(ValueError, match="out of a pickle"):
        alone.save(tmp_path / "alone.svg")
