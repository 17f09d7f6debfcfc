"""What `detect` promises besides verdicts: no trace, modest cost, reports for people and programs."""

import json
import random
import warnings
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from autograder.leak import assert_causal, detect
from tests.leak.specimens import SPECIMENS, attend, past, qkv, sequence


def sound(q, k, v):
    return attend(q, k, v, past(q.size(-2)))


def peeking(q, k, v):
    return attend(q, k, v, past(q.size(-2), 1))


class Remote:
    """A callable such as a remote function: plain tensors out, no copy allowed, randomness out of reach."""

    def __init__(self, code):
        self.code, self.calls = code, 0

    def __getattr__(self, name):
        raise AssertionError(f"the detector looked for {name!r} on an opaque callable")

    def __deepcopy__(self, memo):
        raise AssertionError("an opaque callable was copied")

    def __call__(self, **inputs):
        self.calls += 1
        with torch.no_grad():
            return self.code(**{name: value.detach().clone() for name, value in inputs.items()}).detach()


class Noisy(nn.Module):
    """Dropout, batch statistics, printing and a warning: everything that could leave a trace."""

    def __init__(self):
        super().__init__()
        self.norm, self.rnn, self.seen = nn.BatchNorm1d(8), nn.GRU(8, 8, batch_first=True), 0

    def forward(self, x):
        self.seen += 1
        print("called")
        warnings.warn("careful", stacklevel=1)
        return nn.functional.dropout(self.rnn(self.norm(x.mT).mT)[0], 0.5, self.training)


def single(B, T, rng):
    return {"x": torch.randn(B, T, 8, generator=rng)}


# --- no trace ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "wrap", [lambda m: m, lambda m: lambda x: m(x), lambda m: m.forward], ids=["module", "function", "method"]
)
def test_the_module_is_left_as_it_was(wrap, training, capsys):
    model = Noisy().train(training)
    model.rnn.eval()  # a mixed mode must survive too
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = detect(wrap(model), single, effort="quick")
    assert {"eval", "train"} <= {setting.mode for setting in report.searched}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (model.training, model.rnn.training, model.seen) == (training, False, 0)
    assert not caught
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("grad", [True, False])
def test_generators_and_grad_mode_are_left_as_they_were(grad):
    torch.manual_seed(3)
    random.seed(3)
    expected = torch.rand(3), random.random()
    torch.manual_seed(3)
    random.seed(3)
    with torch.set_grad_enabled(grad):
        detect(SPECIMENS["DropsInTraining"].make(), sequence, effort="quick")
        assert torch.is_grad_enabled() == grad
    assert torch.equal(torch.rand(3), expected[0])
    assert random.random() == expected[1]


def test_the_factorys_tensors_are_left_as_they_were():
    kept = torch.randn(64, 40, 8)
    copy = kept.clone()

    def in_place(x):
        x.mul_(2).add_(1)
        return x.cumsum(1)

    report = detect(in_place, lambda B, T, rng: {"x": kept[:B, :T]}, effort="quick", language="en")
    assert report.verdict == "mutates-input"
    assert torch.equal(kept, copy)


def test_two_runs_say_the_same():
    first, second = (detect(SPECIMENS["DropoutOnScores"].make(), sequence, seed=4).as_dict() for _ in range(2))
    for report in (first, second):
        report.pop("seconds")
    assert first == second


def test_a_hidden_state_in_an_autograd_graph_can_be_copied():
    model = SPECIMENS["KeepsItsState"].make()
    model(torch.randn(2, 4, 8, dtype=torch.float64))  # the kept state now hangs in a graph
    kept = model.state
    assert detect(model, sequence, effort="quick").verdict == "stateful"
    assert model.state is kept


def test_a_module_that_cannot_be_copied_is_the_callers_mistake():
    model = nn.Linear(8, 8)
    model.lock = (i for i in range(3))
    with pytest.raises(TypeError, match="can copy"):
        detect(model, lambda B, T, rng: {"input": torch.randn(B, T, 8)})


# --- opaque callables --------------------------------------------------------------------------------------------------


def test_an_opaque_callable_is_never_copied_and_called_a_modest_number_of_times():
    remote = Remote(sound)
    report = detect(remote, qkv, effort="full")
    assert report.verdict == "causal"
    assert report.calls == remote.calls < 800
    quick = detect(Remote(sound), qkv, effort="quick")
    assert quick.calls < 160


def test_an_opaque_leak_is_found_without_gradients():
    report = detect(Remote(peeking), qkv, language="en")
    assert set(report.leaking_inputs()) == {"k", "v"}
    assert "off by one" in str(report)


@pytest.mark.parametrize("effort", ["quick", "full"])
def test_randomness_out_of_reach_is_random_and_state_is_state(effort):
    generator, memory = torch.Generator().manual_seed(0), {"x": 0.0}

    def drops(x):
        return x.cumsum(1) * torch.rand(x.shape, generator=generator, dtype=x.dtype)

    def remembers(x):
        y = x.cumsum(1) + memory["x"]
        memory["x"] = 0.5 * memory["x"] + x.mean()
        return y

    assert detect(Remote(drops), sequence, effort=effort).verdict == "random"
    assert detect(Remote(remembers), sequence, effort=effort).verdict == "stateful"


def test_a_call_that_hangs_is_tried_once():
    def hangs(**inputs):
        raise TimeoutError("no answer within 5 s")

    report = detect(hangs, qkv, language="en")
    assert (report.verdict, report.calls) == ("error", 1)
    assert "no answer within 5 s" in str(report)


# --- findings ----------------------------------------------------------------------------------------------------------


def test_a_leak_is_located_and_measured():
    def reads_ahead(x):
        return x.cumsum(1) + 0.25 * torch.nn.functional.pad(x, (0, 0, -2, 2))

    report = detect(reads_ahead, sequence, T=8, language="en")
    leak = report.findings[0]
    assert (leak.kind, leak.input, leak.j - leak.t) == ("leaks", "x", 2)
    before, after = leak.witness.inputs_before["x"], leak.witness.inputs_after["x"]
    moved = 0.25 * (after - before)[:, leak.j].abs().max()
    assert leak.size == pytest.approx(float(moved))
    assert report.matrix.shape == (8, 8)
    ahead = torch.nonzero(report.matrix.triu(1))
    assert all(j - t == 2 for t, j in ahead)
    assert len(ahead) == 6


def test_the_matrix_of_causal_code_is_zero_above_the_diagonal_and_nowhere_below():
    matrix = detect(sound, qkv, T=9).matrix
    assert not matrix.triu(1).any()
    assert bool((matrix.tril() > 0).sum() == 45)


@pytest.mark.parametrize("detached", [True, False])
def test_a_leak_in_a_long_sequence_is_located_with_or_without_a_gradient(detached):
    def reads_position_77(x):
        if x.size(1) < 78:
            return x.cumsum(1)
        source = x[:, 77:78]
        return x.cumsum(1) + 1e-3 * (source.detach() if detached else source)

    report = detect(reads_position_77, single, T=90, language="en")
    assert (report.findings[0].kind, report.findings[0].j) == ("leaks", 77)
    assert "j=77" in str(report)


@pytest.mark.parametrize(
    "name", ["fill_of_minus_20", "chunks_see_themselves", "BatchNormBefore", "KeepsItsState", "first_row_empty"]
)
def test_replay_shows_the_finding_in_the_smallest_setting(name):
    specimen = SPECIMENS[name]
    report = detect(specimen.make(), specimen.inputs)
    shown = report.replay()
    worst = report.findings[0]
    assert (shown.finding.kind, shown.finding.input) == (worst.kind, worst.input)
    assert shown.finding.setting.T <= 3
    if worst.kind == "leaks":
        t, j = shown.finding.t, shown.finding.j
        name = shown.finding.input
        same = shown.inputs_before[name] == shown.inputs_after[name]
        assert not same.select(-2, j).any()
        assert same.narrow(-2, 0, j).all()
        assert float((shown.output_before[t] - shown.output_after[t]).abs().max()) == pytest.approx(shown.finding.size)


def test_replay_of_nothing_is_nothing():
    assert detect(sound, qkv, effort="quick").replay() is None


def test_replay_keeps_to_its_time():
    report = detect(peeking, qkv, effort="quick")
    assert report.replay(seconds=0.0).finding == report.findings[0]


# --- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effort": "most"}, '"quick" or "full"'),
        ({"expect": "acausal"}, "strictly-causal"),
        ({"causal_inputs": ["w"]}, "time axis are"),
        ({"time_dim": {"q": 0}}, "follow T"),
        ({"inputs": lambda B, T, rng: {"q": torch.randn(3, 4)}}, "follows T"),
        ({"inputs": lambda B, T, rng: 1 / 0}, "ZeroDivisionError"),
    ],
)
def test_arguments_without_sense_are_refused_in_words(options, words):
    with pytest.raises(ValueError, match=words):
        detect(sound, **{"inputs": qkv, **options})


def test_weights_and_masks_among_the_inputs_are_not_replaced():
    def with_weight(x, w, mask):
        return (x @ w) * mask[..., None] + (x @ w).cumsum(1)

    def inputs(B, T, rng):
        return {
            "x": torch.randn(B, T, 4, generator=rng),
            "w": torch.randn(4, 4, generator=rng),
            "mask": torch.rand(B, T, generator=rng) > 0.5,
        }

    assert_causal(with_weight, inputs)
    assert detect(with_weight, inputs, causal_inputs=["mask"]).verdict == "causal"


def test_lengths_beyond_the_stated_maximum_are_not_tried():
    seen = set()

    def bounded(q, k, v):
        seen.add(q.size(-2))
        return sound(q, k, v)

    detect(bounded, qkv, max_T=12)
    assert max(seen) <= 13  # one longer draw is made to find the axes, but never given to the function
    assert max(seen) == 12


def test_a_deliberate_refusal_is_a_remark_not_an_error():
    def refuses(x):
        if x.size(1) > 16:
            raise ValueError("block_size is 16")
        return x.cumsum(1)

    report = detect(refuses, sequence, language="en")
    assert report.verdict == "causal"
    assert "block_size is 16" in str(report)


# --- reports -----------------------------------------------------------------------------------------------------------


def test_assert_causal_fails_with_the_report_as_its_message():
    assert_causal(sound, qkv, effort="quick")
    with pytest.raises(AssertionError, match="off by one"):
        assert_causal(peeking, qkv, effort="quick", language="en")


@pytest.mark.parametrize("name", SPECIMENS)
def test_reports_are_complete_in_both_languages(name):
    specimen = SPECIMENS[name]
    report = detect(specimen.make(), specimen.inputs, effort="quick", **specimen.options)
    for language in ("zh", "en"):
        lines = report.text(language).splitlines()
        assert len(lines) == 3
        assert all(lines)
        assert "{" not in report.text(language).replace("{'", "")
    assert not any("\u4e00" <= letter <= "\u9fff" for letter in report.text("en"))
    data = json.loads(report.to_json())
    assert data["verdict"] == report.verdict
    assert data["calls"] == report.calls > 0


def test_the_heat_map_is_well_formed_and_speaks():
    report = detect(peeking, qkv, T=6, language="en")
    page = report._repr_html_()
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    space = "{http://www.w3.org/2000/svg}"
    assert svg.get("role") == "img"
    assert len(svg.findall(f".//{space}rect")) == 36
    crosses = [
        path for path in svg.findall(f".//{space}path") if path.get("stroke") == "#000" and "M" in path.get("d")[1:]
    ]
    assert len(crosses) == 5  # (t, t + 1) for t = 0..4, marked by shape and not by colour alone
    assert "0<-1" in svg.find(f"{space}desc").text
    assert "5<-" not in svg.find(f"{space}desc").text


def test_the_heat_map_escapes_what_the_function_says():
    def rude(q, k, v):
        raise RuntimeError("<script>alert(1)</script>")

    assert "<script" not in detect(rude, qkv)._repr_html_()


def test_a_long_matrix_is_pooled_for_drawing():
    report = detect(lambda x: x.cumsum(1), sequence, T=100, effort="quick")
    assert report.matrix.shape == (100, 100)
    assert report._repr_html_().count("<rect") <= 48 * 50
