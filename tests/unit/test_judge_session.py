"""The judge: whose fault a failure is, what is checked, what is named."""

from __future__ import annotations

import textwrap

import pytest
import torch

from autograder.exercises import CourseFault, load
from autograder.judge.diagnose import _same_call, named_mistake, telling_call
from autograder.judge.faults import Fault, MachineFault, StudentFault
from autograder.judge.session import Judge
from autograder.judge.verdict import Outcome
from autograder.text import Text

SOLUTIONS = """
import torch
from torch import nn
from autograder.exercises import alternative, exercise, mistake

@exercise
def double(x):
    return x * 2

@mistake(of=double, zh="看看符号。", en="Look at the sign.")
def negated(x):
    return -2 * x

@mistake(of=double, zh="看看倍数。", en="Look at the factor.")
def tripled(x):
    return x * 3

@alternative(of=double)
def summed(x):
    return x + x

@exercise
class Layer(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n, bias=False)
    def forward(self, x):
        return self.linear(x) / x.shape[-1]

@mistake(of=Layer, zh="除数呢？", en="Where is the divisor?")
class Undivided(Layer):
    def forward(self, x):
        return self.linear(x)
"""

TESTS = '''
import pytest, torch
from autograder.judge import expect

@pytest.mark.exercise("double")
class TestDouble:
    @pytest.mark.weight(3)
    @pytest.mark.parametrize("n", [1, 4])
    def test_values(self, student, reference, draw, n):
        """数值对。

        The values are right.
        """
        x = draw(n)
        expect.close(student.double(x), reference.double(x))

    @pytest.mark.after("test_values")
    def test_inputs_unchanged(self, student, draw):
        """输入不变。

        The input is left unchanged.
        """
        x = draw(3)
        expect.equal(student.double.inputs_after(x)[0], x)

    def test_of_the_course(self, student, draw):
        """课程自己的错。

        The course's own fault.
        """
        raise KeyError("typo")

    def test_needs_sorted_values(self, student, draw):
        """用结果做别的事。

        Uses the result for something.
        """
        {4.0: 1}[float(student.double(torch.tensor([2.0]))[0])]

@pytest.mark.exercise("Layer")
class TestLayer:
    def test_values(self, student, draw):
        """模块的数值对。

        The module's values are right.
        """
        layer = student.Layer(3)
        layer.to(torch.float64)
        (name, weight), = layer.parameters().items()
        layer.load_state_dict({name: torch.eye(3, dtype=torch.float64)})
        x = draw(2, 3)
        expect.close(layer(x), x / 3)
        grads = layer.gradients(x, cotangent=torch.ones(2, 3, dtype=torch.float64))
        expect.close(grads.inputs[0], torch.full((2, 3), 1 / 3, dtype=torch.float64))
        assert set(grads.parameters) == {name}
        layer.eval()
        assert layer.training is False
'''


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    (folder / "solutions").mkdir()
    (folder / "tests").mkdir()
    (folder / "solutions" / "one.py").write_text(SOLUTIONS)
    (folder / "tests" / "test_one.py").write_text(TESTS)
    with Judge(folder / "tests", load(folder / "solutions")) as made:
        yield made


def outcomes(judge, exercise, solution, seed=1):
    channel = judge.solution(judge.exercises[exercise], solution)
    return {run.test.name: run for run in judge.run(exercise, lambda: channel, seed)}


def test_the_reference_passes_everything_that_is_not_the_courses_fault(judge):
    runs = outcomes(judge, "double", judge.exercises["double"].reference)
    assert {name: run.outcome for name, run in runs.items()} == {
        "test_values": Outcome.PASSED,
        "test_inputs_unchanged": Outcome.PASSED,
        "test_of_the_course": Outcome.COURSE_FAULT,
        "test_needs_sorted_values": Outcome.PASSED,
    }
    assert "typo" in runs["test_of_the_course"].problem


def test_parameters_are_one_test_with_one_weight(judge):
    (test,) = [t for t in judge.tests["double"] if t.name == "test_values"]
    assert len(test.items) == 2
    assert test.weight == 3
    assert test.text == Text(zh="数值对。", en="The values are right.")


def test_what_the_students_values_break_is_the_students_fault(judge):
    runs = outcomes(judge, "double", lambda x: x * 5)
    assert runs["test_needs_sorted_values"].outcome is Outcome.FAILED
    assert "The values of the result are wrong" in runs["test_needs_sorted_values"].text.en


def test_after_a_failed_prerequisite_a_test_is_not_checked(judge):
    runs = outcomes(judge, "double", lambda x: x)
    assert runs["test_values"].outcome is Outcome.FAILED
    assert runs["test_inputs_unchanged"].outcome is Outcome.NOT_CHECKED


def raises_when_called(x):
    raise ValueError("no idea")


def stub(x):
    raise NotImplementedError


FAULTS = {
    "exception": (raises_when_called, Fault.RAISED, "The call raised an error: ValueError: no idea"),
    "nothing returned": (lambda x: None, Fault.TYPE, "got None (is a return missing?)"),
    "shape": (lambda x: (x * 2)[None], Fault.SHAPE, "should have shape (1,), it has (1, 1)"),
    "dtype": (lambda x: (x * 2).float(), Fault.DTYPE, "should have dtype float64, it has float32"),
    "bool": (lambda x: x > 0, Fault.DTYPE, "it has bool"),
    "nan": (lambda x: x * float("nan"), Fault.NONFINITE, "contains NaN"),
    "list": (lambda x: (x * 2).tolist(), Fault.TYPE, "should be a float64 tensor of shape (1,), got a tuple of 1"),
    "sparse": (lambda x: (x * 2).to_sparse(), Fault.TYPE, "got an object of type float64 tensor, sparse_coo"),
    "exit": (lambda x: exit(0), Fault.RAISED, "SystemExit"),
    "recursion": (lambda x: FAULTS["recursion"][0](x), Fault.RAISED, "RecursionError"),
    "stub": (stub, Fault.UNFINISHED, "has not been answered yet"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_way_to_fail_has_its_own_words(judge, name):
    solution, fault, words = FAULTS[name]
    run = outcomes(judge, "double", solution)["test_values"]
    assert (run.outcome, run.fault) == (Outcome.FAILED, fault)
    assert words in run.text.en
    assert run.text.zh != run.text.en


def test_a_missing_name_ends_the_exercise_at_once(judge):
    class Elsewhere:
        def __new__(cls):
            from autograder.judge.student import Direct

            return Direct({"something_else": len})

    runs = list(judge.run("double", Elsewhere, 1))
    assert runs[0].fault is Fault.MISSING
    assert "double is not defined" in runs[0].text.en
    assert [run.outcome for run in runs[1:]] == [Outcome.NOT_CHECKED] * 3


def test_two_hangs_end_the_exercise(judge):
    class Hanging:
        def request(self, header, tensors):
            raise StudentFault(Fault.TIMEOUT, Text(zh="太久", en="too long"))

    runs = list(judge.run("double", Hanging, 1))
    assert [run.fault for run in runs] == [Fault.TIMEOUT, None, None, Fault.TIMEOUT]


def test_a_fault_of_the_machine_is_nobodys(judge):
    class Broken:
        def request(self, header, tensors):
            raise MachineFault("no memory")

    runs = list(judge.run("double", Broken, 1))
    assert runs[0].outcome is Outcome.MACHINE_FAULT


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["negated", "tripled"])
def test_a_rewritten_mistake_is_named(judge, name, seed):
    rewritten = {"negated": lambda x: (x + x).neg(), "tripled": lambda x: x + x + x}[name]
    exercise = judge.exercises["double"]
    runs = list(outcomes(judge, "double", rewritten, seed).values())
    assert named_mistake(judge, exercise, runs, seed).name == name


def test_an_unknown_mistake_is_not_named_and_its_smallest_input_is_found(judge):
    runs = list(outcomes(judge, "double", lambda x: x * 7).values())
    assert named_mistake(judge, judge.exercises["double"], runs, 1) is None
    call = telling_call(runs)
    assert call.args[0].numel() == 1
    assert torch.allclose(call.got, call.args[0] * 7)
    assert torch.allclose(call.want, call.args[0] * 2)


def test_modules_are_judged_as_modules_whatever_their_attributes_are_called(judge):
    class Other(torch.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.anything = torch.nn.Linear(n, n, bias=False)

        def forward(self, x):
            return self.anything(x) / x.shape[-1]

    assert outcomes(judge, "Layer", Other)["test_values"].outcome is Outcome.PASSED
    Other.forward = lambda self, x: self.anything(x)
    runs = list(outcomes(judge, "Layer", Other).values())
    assert named_mistake(judge, judge.exercises["Layer"], runs, 1).name == "Undivided"


def test_runs_do_not_depend_on_what_ran_before(judge):
    exercise = judge.exercises["double"]
    first = [run.outcome for run in outcomes(judge, "double", exercise.reference, 5).values()]
    outcomes(judge, "double", raises_when_called, 6)
    assert [run.outcome for run in outcomes(judge, "double", exercise.reference, 5).values()] == first


def test_the_judges_own_random_numbers_stay_as_they_are(judge):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    outcomes(judge, "double", judge.exercises["double"].reference)
    assert torch.equal(torch.rand(2), expected)


COURSE_FAULTS = {
    "no exercise": ("def test_a(student):\n    '''一\n\n    one'''", "expected @pytest.mark.exercise"),
    "no docstring": (
        "import pytest\n@pytest.mark.exercise('double')\ndef test_a(student):\n    pass",
        "expected a docstring with a Chinese paragraph",
    ),
    "syntax": ("def test_a(:", "SyntaxError"),
    "after": (
        "import pytest\n@pytest.mark.exercise('double')\n@pytest.mark.after('test_b')\n"
        "def test_a(student):\n    '''一\n\n    one'''",
        "names test_b, no test above it",
    ),
    "unknown mark": (
        "import pytest\n@pytest.mark.exercise('double')\n@pytest.mark.wieght(2)\n"
        "def test_a(student):\n    '''一\n\n    one'''",
        "wieght",
    ),
}


@pytest.mark.parametrize("name", COURSE_FAULTS)
def test_hidden_tests_that_cannot_be_used_are_the_courses_fault(judge, tmp_path, name):
    source, words = COURSE_FAULTS[name]
    (tmp_path / "test_bad.py").write_text(textwrap.dedent(source))
    with pytest.raises(CourseFault, match=words.replace("(", r"\(")):
        Judge(tmp_path, judge.exercises)


def test_a_replay_ends_at_the_first_difference_and_does_not_ask_the_reference_again(judge):
    runs = outcomes(judge, "double", lambda x: x * 7)
    run = next(run for run in runs.values() if run.outcome is Outcome.FAILED and len(run.calls) > 0)
    asked = []

    def replayed(solution):
        def counted(x):
            asked.append(x)
            return solution(x)

        asked.clear()
        return judge.replay(run, judge.solution(judge.exercises["double"], counted), 1, _same_call)

    assert replayed(lambda x: x * 8) is None
    assert len(asked) == 1
    again = replayed(lambda x: 7 * x)
    assert again.outcome is run.outcome and again.fault is run.fault
    assert len(asked) == len(run.calls) == len(again.calls)
    assert all(new.want is old.want for new, old in zip(again.calls, run.calls, strict=True))
