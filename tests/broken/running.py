"""Mishaps that show only when the notebook runs: magics, input, warnings, unusual ways to define an answer."""

from __future__ import annotations

import re

from tests.broken.sheet import Sheet, Table, code

RUNNING = case = Table()


def renamed(sheet: Sheet, number: int, name: str) -> str:
    """An answer's source with the exercise's name replaced."""
    return re.sub(rf"\b{sheet.names[number]}\b", name, sheet.answer(number)["source"])


def before_definition(sheet: Sheet, number: int, lines: str) -> str:
    """An answer's source with lines put right before the definition."""
    return re.sub(
        rf"^def {sheet.names[number]}\b", lambda m: f"{lines}\n{m[0]}", sheet.answer(number)["source"], flags=re.M
    )


@case(kernel=True)
def timed_answer(sheet: Sheet) -> None:
    """An answer under ``%%time``."""
    sheet.answer(0)["source"] = "%%time\n" + sheet.answer(0)["source"]


@case(kernel=True)
def magics_and_shell_lines(sheet: Sheet) -> None:
    """Line magics, a shell line and a help line in and around answers."""
    sheet.insert(
        code("%matplotlib inline\n!echo hello\n%config InlineBackend.figure_format = 'svg'"), before=sheet.cells[0]
    )
    sheet.answer(0)["source"] = "%timeit 1 + 1\n" + sheet.answer(0)["source"]
    sheet.answer(1)["source"] += f"\n{sheet.names[1]}?"


@case(kernel=True)
def matplotlib_window(sheet: Sheet) -> None:
    """A plot in a window, on a grader without a screen."""
    window = "%matplotlib qt\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    sheet.insert(code(window), after=sheet.check(0))


@case(kernel=True)
def asks_for_input(sheet: Sheet) -> None:
    """A cell of the student's own waits for the keyboard."""
    sheet.insert(code("T = int(input('T = '))"), before=sheet.answer(1))


@case(kernel=True)
def answer_asks_for_input_once(sheet: Sheet) -> None:
    """A line with ``input`` after the definition, in the answer's own cell."""
    sheet.answer(1)["source"] += "\n\nsize = input('size? ')"


@case()
def warns_on_stderr(sheet: Sheet) -> None:
    """A right answer that warns at every call."""
    warning = (
        f"import warnings\n\n\ndef {sheet.names[0]}(*given):\n    warnings.warn('slow')\n    return _quiet(*given)"
    )
    sheet.answer(0)["source"] = renamed(sheet, 0, "_quiet") + "\n\n\n" + warning


@case()
def numpy_scalar_shown(sheet: Sheet) -> None:
    """A cell whose last line shows a numpy scalar; it is not a score."""
    sheet.insert(code("import numpy as np\n\nnp.float64(0.25)"), before=sheet.check(0))


@case()
def decorated_answer(sheet: Sheet) -> None:
    """The answer under a decorator of the student's own."""
    decorator = "def logged(f):\n    def inner(*given):\n        return f(*given)\n    return inner\n\n\n"
    sheet.answer(0)["source"] = decorator + before_definition(sheet, 0, "@logged")


@case()
def lambda_answer(sheet: Sheet) -> None:
    """The answer assigned as a lambda."""
    sheet.answer(0)["source"] = renamed(sheet, 0, "_f") + f"\n\n\n{sheet.names[0]} = lambda *given: _f(*given)"


@case(told=("nbgrader information",))
def lambda_answer_stripped(sheet: Sheet) -> None:
    """The same with the metadata lost."""
    lambda_answer(sheet)
    sheet.strip()


@case()
def partial_answer(sheet: Sheet) -> None:
    """The answer made by functools.partial."""
    source = renamed(sheet, 0, "_f")
    sheet.answer(0)["source"] = f"import functools\n\n\n{source}\n\n\n{sheet.names[0]} = functools.partial(_f)"


@case(kernel=True)
def imported_answer(sheet: Sheet) -> None:
    """The answer written to a module by ``%%writefile`` and imported."""
    sheet.insert(code("%%writefile mine.py\n" + sheet.answer(0)["source"]), before=sheet.answer(0))
    sheet.answer(0)["source"] = f"from mine import {sheet.names[0]}"


@case()
def answer_in_a_class_with_an_alias(sheet: Sheet) -> None:
    """The answer as a static method, and its name made an alias."""
    name, body = sheet.names[0], before_definition(sheet, 0, "@staticmethod")
    indented = "\n".join(f"    {line}" if line else "" for line in body.split("\n"))
    sheet.answer(0)["source"] = f"class Answers:\n{indented}\n\n\n{name} = Answers.{name}"


@case(lost=(0,))
def answer_only_in_a_class(sheet: Sheet) -> None:
    """The answer as a static method and nothing under the name asked for."""
    body = before_definition(sheet, 0, "@staticmethod")
    indented = "\n".join(f"    {line}" if line else "" for line in body.split("\n"))
    sheet.answer(0)["source"] = f"class Answers:\n{indented}"


@case()
def answer_under_if(sheet: Sheet) -> None:
    """The answer defined inside an ``if``."""
    indented = "\n".join(f"    {line}" if line else "" for line in sheet.answer(0)["source"].split("\n"))
    sheet.answer(0)["source"] = f"if True:\n{indented}"


@case(told=("nbgrader information",))
def answer_under_if_stripped(sheet: Sheet) -> None:
    """The same with the metadata lost."""
    answer_under_if(sheet)
    sheet.strip()


@case()
def future_annotations(sheet: Sheet) -> None:
    """Annotations with names that do not exist."""
    sheet.answer(0)["source"] = "from __future__ import annotations\n\nshape: Tensor\n\n\n" + sheet.answer(0)["source"]


@case()
def runs_as_main(sheet: Sheet) -> None:
    """A ``__main__`` block at the end of an answer."""
    sheet.answer(0)["source"] += "\n\n\nif __name__ == '__main__':\n    print('done')"


@case()
def chinese_helper_names(sheet: Sheet) -> None:
    """A helper with a Chinese name."""
    source = renamed(sheet, 0, "前缀平均")
    sheet.answer(0)["source"] = f"{source}\n\n\ndef {sheet.names[0]}(*已知):\n    return 前缀平均(*已知)"


@case()
def own_cell_raises(sheet: Sheet) -> None:
    """Cells of the student's own that fail, before the answers."""
    sheet.insert(code("1 / 0"), code("undefined_name"), code("def ("), before=sheet.cells[0])


@case()
def prints_a_lot(sheet: Sheet) -> None:
    """Two thousand lines of output."""
    sheet.insert(code("for i in range(2000):\n    print(i)"), before=sheet.check(0))


@case()
def answer_shadowed_in_a_string(sheet: Sheet) -> None:
    """An old attempt kept in a string below the answer."""
    sheet.answer(0)["source"] += f'\n\n"""\ndef {sheet.names[0]}(x):\n    return x\n"""'
