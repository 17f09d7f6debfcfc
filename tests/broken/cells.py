"""Mishaps of the cells: copied, deleted, moved, retyped, split, merged, stripped, edited, answered somewhere else."""

from __future__ import annotations

import re

from tests.broken.sheet import Sheet, Table, code, copied, words

CELLS = case = Table()

DUPLICATE = "appeared more than once"
PUT_IN_PLACE = "recognised by its name and put in its place"


def rubbish(sheet: Sheet, number: int) -> str:
    """A wrong answer to an exercise: its name is defined, and good for nothing."""
    return f"def {sheet.names[number]}(*anything):\n    return 'wrong'"


# --- copied ----------------------------------------------------------------------------------------------------------


@case(told=(DUPLICATE, "prefix_mean"))
def answer_then_a_copy_of_the_stub(sheet: Sheet) -> None:
    """The answer cell was copied before it was filled; the empty copy stands after the answer."""
    answered = copied(sheet.answer(0))
    stub = sheet.unanswer(0)
    sheet.insert(answered, before=stub)


@case(told=(DUPLICATE,))
def later_attempt_in_a_copy(sheet: Sheet) -> None:
    """A wrong first attempt, then a right one in a copy of the cell."""
    right = sheet.answer(0)
    sheet.insert(copied(right, rubbish(sheet, 0)), before=right)


@case(told=(DUPLICATE,))
def broken_later_attempt_in_a_copy(sheet: Sheet) -> None:
    """A right answer, then a copy that was left in the middle of a line: Python never took it."""
    right = sheet.answer(0)
    sheet.insert(copied(right, f"def {sheet.names[0]}(x:\n    return ["), after=right)


@case(told=(DUPLICATE,))
def unfinished_later_attempt_in_a_copy(sheet: Sheet) -> None:
    """A right answer, then a copy that still raises NotImplementedError, only with another docstring."""
    right = sheet.answer(0)
    unfinished = f"def {sheet.names[0]}(*x):\n    '''try again'''\n    raise NotImplementedError"
    sheet.insert(copied(right, unfinished), after=right)


@case(lost=(0,), told=(DUPLICATE,))
def last_finished_attempt_is_wrong(sheet: Sheet) -> None:
    """A right answer, then a wrong one in a copy: the last one counts, as it did when the student ran it."""
    right = sheet.answer(0)
    sheet.insert(copied(right, rubbish(sheet, 0)), after=right)


@case(told=(DUPLICATE,))
def check_copied(sheet: Sheet) -> None:
    """A check cell copied to try it again."""
    sheet.insert(copied(sheet.check(1)), after=sheet.check(1))


@case(told=(DUPLICATE,))
def check_copied_and_changed(sheet: Sheet) -> None:
    """A copy of a check with numbers of the student's own."""
    sheet.insert(copied(sheet.check(1), "print('mine')"), after=sheet.check(1))


@case(told=(DUPLICATE,))
def notebook_pasted_twice(sheet: Sheet) -> None:
    """All cells selected, copied and pasted below."""
    sheet.insert(*[copied(cell) for cell in sheet.cells])


@case(told=(DUPLICATE,))
def written_answer_split_in_two(sheet: Sheet) -> None:
    """The written answer in two cells, both with the question's id: a human reads both."""
    cell = sheet.written()
    half = len(cell["source"]) // 2
    sheet.insert(copied(cell, cell["source"][half:]), after=cell)
    cell["source"] = cell["source"][:half]


# --- deleted ---------------------------------------------------------------------------------------------------------


@case(lost=(0,), told=("No answer to prefix_mean was found",))
def answer_deleted(sheet: Sheet) -> None:
    """The answer cell is gone."""
    sheet.remove(sheet.answer(0))


@case(lost=(0,), told=("No answer to prefix_mean was found",))
def answer_emptied(sheet: Sheet) -> None:
    """The answer cell is there, without its text."""
    sheet.answer(0)["source"] = "\n  \n"


@case(told=("Cell causal_mask was missing and was put back",))
def check_deleted(sheet: Sheet) -> None:
    """A check cell is gone."""
    sheet.remove(sheet.check(1))


@case(told=("Cell causal_mask was missing and was put back",))
def check_emptied(sheet: Sheet) -> None:
    """A check cell was emptied."""
    sheet.check(1)["source"] = ""


@case(told=("was missing and was put back",))
def everything_but_the_answers_deleted(sheet: Sheet) -> None:
    """Only the answer cells were handed in."""
    kept = [sheet.answer(number) for number in range(len(sheet.names))] + [sheet.written()]
    sheet.book["cells"] = [cell for cell in sheet.cells if any(cell is k for k in kept)]


@case()
def prose_deleted(sheet: Sheet) -> None:
    """All explanations are gone."""
    sheet.book["cells"] = [cell for cell in sheet.cells if "nbgrader" in cell["metadata"]]


@case(lost=("all",), told=("No answer to",))
def all_cells_deleted(sheet: Sheet) -> None:
    """A notebook without a cell."""
    sheet.book["cells"] = []


# --- moved -----------------------------------------------------------------------------------------------------------


@case(told=("put back",))
def cells_reversed(sheet: Sheet) -> None:
    """Last cell first."""
    sheet.cells.reverse()


@case(told=("put back",))
def answer_moved_to_the_end(sheet: Sheet) -> None:
    """The first answer stands last."""
    cell = sheet.answer(0)
    sheet.remove(cell)
    sheet.insert(cell)


@case(told=("put back",))
def answers_first_checks_last(sheet: Sheet) -> None:
    """All answers at the top."""
    answers = [sheet.answer(number) for number in range(len(sheet.names))]
    sheet.remove(*answers)
    sheet.insert(*answers, before=sheet.cells[0])


# --- split and merged ------------------------------------------------------------------------------------------------


@case(told=("they were joined",))
def function_split_in_its_middle(sheet: Sheet) -> None:
    """The cell was split inside the function; both halves kept the id."""
    cell = sheet.answer(1)
    lines = cell["source"].split("\n")
    cell["source"] = "\n".join(lines[:-1])
    sheet.insert(copied(cell, lines[-1]), after=cell)


@case(told=("they were joined",))
def function_split_in_three(sheet: Sheet) -> None:
    """The same twice over, and only the first part kept its metadata."""
    cell = sheet.answer(1)
    lines = cell["source"].split("\n")
    cell["source"] = lines[0]
    sheet.insert(code("\n".join(lines[1:-1])), code(lines[-1]), after=cell)


@case(told=(DUPLICATE,))
def helper_split_off_before(sheet: Sheet) -> None:
    """Split between two functions: the helper first, the answer second."""
    cell = sheet.answer(0)
    answer = cell["source"].replace(f"def {sheet.names[0]}", "def helper")
    sheet.insert(copied(cell, answer), before=cell)
    cell["source"] = f"def {sheet.names[0]}(*given):\n    return helper(*given)"


@case(told=(DUPLICATE,))
def helper_split_off_after(sheet: Sheet) -> None:
    """Split between two functions: the answer first, the helper it calls second."""
    cell = sheet.answer(0)
    helper = cell["source"].replace(f"def {sheet.names[0]}", "def helper")
    cell["source"] = f"def {sheet.names[0]}(*given):\n    return helper(*given)"
    sheet.insert(copied(cell, helper), after=cell)


def merge(sheet: Sheet) -> None:
    first, second = sheet.answer(0), sheet.answer(1)
    first["source"] += "\n\n\n" + second["source"]


@case(told=("The answer to causal_mask is in one cell with another",))
def merged_and_second_cell_deleted(sheet: Sheet) -> None:
    """Two answers in the first one's cell."""
    merge(sheet)
    sheet.remove(sheet.answer(1))


@case(told=("The answer to causal_mask is in one cell with another",))
def merged_and_second_stub_left(sheet: Sheet) -> None:
    """Two answers in the first cell; the second stub, left below, would overwrite the second answer."""
    merge(sheet)
    sheet.unanswer(1)


@case(told=("The answer to causal_mask is in one cell with another",))
def merged_and_second_cell_emptied(sheet: Sheet) -> None:
    """Two answers in the first cell, the second one emptied."""
    merge(sheet)
    sheet.answer(1)["source"] = ""


@case(told=("The answer to causal_mask is in one cell with another", "nbgrader information"))
def merged_and_stripped(sheet: Sheet) -> None:
    """Two answers in one cell, and the metadata lost."""
    merge(sheet)
    sheet.remove(sheet.answer(1))
    sheet.strip()


@case(told=(PUT_IN_PLACE, "in one cell with another"))
def answers_in_each_others_cells(sheet: Sheet) -> None:
    """The second answer stands in the first one's cell, and the first in the third one's, after the third."""
    sheet.answer(2)["source"] += "\n\n\n" + sheet.answer(0)["source"]
    sheet.answer(0)["source"] = sheet.answer(1)["source"]
    sheet.unanswer(1)


# --- answered somewhere else -----------------------------------------------------------------------------------------


@case(told=(PUT_IN_PLACE,))
def answer_in_a_new_cell_below(sheet: Sheet) -> None:
    """Typed into a new cell under the stub."""
    new = code(sheet.answer(0)["source"])
    sheet.insert(new, after=sheet.unanswer(0))


@case(told=(PUT_IN_PLACE,))
def answer_in_a_new_cell_above(sheet: Sheet) -> None:
    """Typed into a new cell above the stub, which would overwrite it."""
    new = code(sheet.answer(0)["source"])
    sheet.insert(new, before=sheet.unanswer(0))


@case(told=(PUT_IN_PLACE,))
def answers_at_the_end_with_a_helper(sheet: Sheet) -> None:
    """All stubs left; a helper and then the answers, which need it when defined, in new cells at the end."""
    news = [code(f"@plain\n{_bare(sheet.answer(n)['source'], sheet.names[n])}") for n in range(len(sheet.names))]
    for number in range(len(sheet.names)):
        sheet.unanswer(number)
    sheet.insert(code("def plain(thing):\n    return thing"), *news)


def _bare(source: str, name: str) -> str:
    """The source from the definition of a name on: a decorator put before it decorates that."""
    found = re.search(rf"^(def|class) {name}\b", source, re.MULTILINE)
    assert found is not None
    return source[found.start() :]


@case(told=(PUT_IN_PLACE, "in one cell with another"))
def all_answers_in_one_new_cell(sheet: Sheet) -> None:
    """All stubs left; one cell at the end holds every answer."""
    everything = "\n\n\n".join(sheet.answer(number)["source"] for number in range(len(sheet.names)))
    for number in range(len(sheet.names)):
        sheet.unanswer(number)
    sheet.insert(code(everything))


@case(told=(PUT_IN_PLACE, "read-only and was restored"))
def answer_typed_into_the_check(sheet: Sheet) -> None:
    """Typed above the assertions of the check cell, the stub left."""
    sheet.check(0)["source"] = sheet.answer(0)["source"] + "\n\n" + sheet.check(0)["source"]
    sheet.unanswer(0)


@case(told=(PUT_IN_PLACE,))
def only_the_stubs_import_kept(sheet: Sheet) -> None:
    """The new cell relies on an import that stands in the stub."""
    new = code(re.sub(r"^(from|import) .*\n+", "", sheet.answer(2)["source"], flags=re.MULTILINE))
    sheet.insert(new, after=sheet.unanswer(2))


@case(told=("recognised by its place",))
def written_answer_in_a_new_cell(sheet: Sheet) -> None:
    """The written answer in two new cells under the placeholder."""
    cell = sheet.written()
    sheet.insert(words(cell["source"]), words("And also this."), after=cell)
    cell["source"] = _placeholder(sheet)


@case(told=("recognised by its place", "read-only and was restored"))
def written_answer_in_the_question(sheet: Sheet) -> None:
    """The written answer typed under the question's text, the placeholder left."""
    cell = sheet.written()
    prompt = sheet.cells[sheet.at(cell) - 1]
    prompt["source"] += "\n\n" + cell["source"]
    cell["source"] = _placeholder(sheet)


def _placeholder(sheet: Sheet) -> str:
    given = sheet.release["cells"]
    return next(c["source"] for c in given if c["metadata"].get("nbgrader", {}).get("grade_id") == sheet.question)


# --- retyped ---------------------------------------------------------------------------------------------------------


@case(told=("had become a markdown cell; it was turned back into code",))
def answer_became_markdown(sheet: Sheet) -> None:
    """The key M pressed in the answer cell."""
    sheet.answer(0)["cell_type"] = "markdown"


@case(told=("had become a raw cell; it was turned back into code",))
def answer_became_raw(sheet: Sheet) -> None:
    """The key R pressed in the answer cell."""
    sheet.answer(0)["cell_type"] = "raw"


@case(told=("had become a markdown cell", "nbgrader information"))
def answer_became_markdown_and_stripped(sheet: Sheet) -> None:
    """The same, and the metadata lost."""
    sheet.answer(0)["cell_type"] = "markdown"
    sheet.strip()


@case(told=("The cell of causal_mask had become a raw cell",))
def check_became_raw(sheet: Sheet) -> None:
    """The key R pressed in a check cell."""
    sheet.check(1)["cell_type"] = "raw"


@case(told=("had become a code cell; it was turned back into markdown",))
def written_answer_became_code(sheet: Sheet) -> None:
    """The key Y pressed in the written answer."""
    sheet.written()["cell_type"] = "code"


@case(told=("had become a code cell", "nbgrader information"))
def written_answer_became_code_and_stripped(sheet: Sheet) -> None:
    """The same, and the metadata lost."""
    sheet.written()["cell_type"] = "code"
    sheet.strip()


# --- stripped --------------------------------------------------------------------------------------------------------


@case(told=("nbgrader information",))
def stripped_by_colab(sheet: Sheet) -> None:
    """Saved by Colab: no nbgrader metadata, ids of its own."""
    sheet.strip()
    for number, cell in enumerate(sheet.cells):
        cell["metadata"] = {"id": f"Zx{number}", "colab": {"base_uri": "https://localhost:8080/"}}
    sheet.book |= {"nbformat_minor": 0, "metadata": {"colab": {}, "kernelspec": {"name": "python3"}}}


@case(told=("nbgrader information",))
def stripped_and_shuffled(sheet: Sheet) -> None:
    """Metadata lost and all cells before the written question reversed: names still tell the answers."""
    prompt = sheet.at(sheet.written()) - 1
    sheet.strip()
    sheet.cells[:prompt] = reversed(sheet.cells[:prompt])


@case(lost=(1,), told=("nbgrader information",))
def stripped_and_renamed_function(sheet: Sheet) -> None:
    """Metadata lost and one function renamed: its place tells whose answer it is, but not under the name asked for."""
    cell = sheet.answer(1)
    cell["source"] = cell["source"].replace(sheet.names[1], "my_own_name")
    sheet.strip()


@case(lost=(1,), told=("nbgrader information",))
def stripped_and_syntax_error(sheet: Sheet) -> None:
    """Metadata lost and one answer with a syntax error: it keeps its place, and the others their points."""
    sheet.answer(1)["source"] += "\n    return ]"
    sheet.strip()


@case(told=("nbgrader information",))
def stripped_with_a_stub_below(sheet: Sheet) -> None:
    """Metadata lost; a copy of the stub stands after the answer and would overwrite it."""
    answered = copied(sheet.answer(0))
    sheet.insert(answered, before=sheet.unanswer(0))
    sheet.strip()


@case(told=(PUT_IN_PLACE,))
def one_answer_stripped(sheet: Sheet) -> None:
    """One answer cell was made anew, without metadata."""
    sheet.answer(2)["metadata"] = {}


@case(told=("recognised by its place",))
def written_answer_stripped(sheet: Sheet) -> None:
    """The written answer's cell was made anew."""
    sheet.written()["metadata"] = {}


@case()
def rewritten_by_vs_code(sheet: Sheet) -> None:
    """VS Code adds metadata of its own and turns sources into lists."""
    for cell in sheet.cells:
        cell["metadata"] |= {"vscode": {"languageId": "python"}, "deletable": True, "editable": True}
        cell["source"] = cell["source"].splitlines(keepends=True)


# --- edited and forged -----------------------------------------------------------------------------------------------


@case(told=("Cell prefix_mean is read-only and was restored",))
def check_weakened(sheet: Sheet) -> None:
    """A check turned into one that cannot fail."""
    sheet.check(0)["source"] = "assert True"


@case(told=("is read-only and was restored",))
def import_added_to_a_locked_cell(sheet: Sheet) -> None:
    """An answer needs an import that the student put into the locked first cell: what was typed there still runs."""
    locked = next(cell for cell in sheet.cells if cell["metadata"].get("nbgrader", {}).get("locked"))
    locked["source"] += "\nimport functools as tools"
    sheet.answer(0)["source"] = "@tools.lru_cache(None)\ndef _kept():\n    pass\n\n\n" + sheet.answer(0)["source"]


@case()
def open_cell_changed(sheet: Sheet) -> None:
    """A value changed in a cell that is meant to be played with."""
    cell = next(c for c in sheet.cells if c["cell_type"] == "code" and "nbgrader" not in c["metadata"])
    cell["source"] = "T = 7\nprint(T)"


@case()
def comments_and_layout_of_a_check_changed(sheet: Sheet) -> None:
    """A formatter ran over the notebook: the checks still are what they were."""
    for number in range(len(sheet.names)):
        sheet.check(number)["source"] = f"# formatted\n\n{sheet.check(number)['source']}   \n"


@case()
def points_and_flags_forged(sheet: Sheet) -> None:
    """A hundred points a cell, answers marked as checks and checks as answers."""
    for cell in sheet.cells:
        if managed := cell["metadata"].get("nbgrader"):
            managed |= {"points": 100, "grade": not managed["grade"], "solution": not managed["solution"], "locked": 7}
            managed["checksum"] = None


@case()
def unknown_grade_ids(sheet: Sheet) -> None:
    """Cells of the student's own that claim to be graded."""
    for identity in ("bonus", "", 7, None, ["causal_mask"]):
        own = code("bonus = 100")
        own["metadata"] = {"nbgrader": {"grade_id": identity, "grade": True, "points": 100, "solution": False}}
        sheet.insert(own, before=sheet.check(0))


@case(told=(PUT_IN_PLACE,))
def ids_of_two_answers_swapped(sheet: Sheet) -> None:
    """The metadata of two answers changed places; both functions are still defined."""
    first, second = sheet.answer(0), sheet.answer(1)
    first["metadata"], second["metadata"] = second["metadata"], first["metadata"]


@case(lost=("all",), told=("No answer to",))
def notebook_of_another_assignment(sheet: Sheet) -> None:
    """The notebook of the week before."""
    other = code("def other_exercise():\n    return 1")
    other["metadata"] = {"nbgrader": {"grade_id": "other_exercise_answer", "solution": True, "schema_version": 3}}
    sheet.book["cells"] = [words("# Another week"), other]


@case(lost=("all",))
def nothing_done(sheet: Sheet) -> None:
    """Handed in as it was handed out."""
    sheet.book = sheet.release


@case(lost=("all",), told=("nbgrader information",))
def nothing_done_and_stripped(sheet: Sheet) -> None:
    """The same, its metadata lost."""
    sheet.book = sheet.release
    sheet.strip()


@case(lost=(0,))
def only_a_comment_written(sheet: Sheet) -> None:
    """A comment in place of the placeholder; the code is the stub's."""
    sheet.unanswer(0)
    sheet.answer(0)["source"] = sheet.answer(0)["source"].replace("# YOUR CODE HERE", "# I do not know how")


# --- several definitions, own cells ----------------------------------------------------------------------------------


@case()
def two_definitions_in_one_cell(sheet: Sheet) -> None:
    """A first try above the right answer, in the same cell."""
    sheet.answer(0)["source"] = rubbish(sheet, 0) + "\n\n\n" + sheet.answer(0)["source"]


@case(told=("prefix_mean is defined in more than one cell",))
def first_try_in_an_own_cell(sheet: Sheet) -> None:
    """A first try in a cell of the student's own above the answer."""
    sheet.insert(code(rubbish(sheet, 0)), before=sheet.answer(0))


@case(told=("prefix_mean is defined in more than one cell",))
def better_try_in_an_own_cell(sheet: Sheet) -> None:
    """A wrong answer in its cell, the right one in a new cell below: what runs last counts."""
    right = code(sheet.answer(0)["source"])
    sheet.answer(0)["source"] = rubbish(sheet, 0)
    sheet.insert(right, after=sheet.answer(0))


@case(told=(PUT_IN_PLACE,))
def two_tries_in_own_cells(sheet: Sheet) -> None:
    """The stub left; two tries in new cells at the end, the second right."""
    news = code(rubbish(sheet, 0)), code(sheet.answer(0)["source"])
    sheet.unanswer(0)
    sheet.insert(*news)


@case(told=("in one cell with another", "prefix_mean is defined in more than one cell"))
def drafts_of_two_answers_in_an_own_cell(sheet: Sheet) -> None:
    """Both answers drafted in a cell at the top; the first then put right in its place, the second's stub left."""
    sheet.insert(code(rubbish(sheet, 0) + "\n\n\n" + sheet.answer(1)["source"]), before=sheet.cells[0])
    sheet.unanswer(1)


@case(told=(PUT_IN_PLACE, "in one cell with another"))
def drafts_of_two_answers_then_one_anew(sheet: Sheet) -> None:
    """Both stubs left; both answers in a cell at the end, and the first one anew, and right, in the last cell."""
    news = code(rubbish(sheet, 0) + "\n\n\n" + sheet.answer(1)["source"]), code(sheet.answer(0)["source"])
    sheet.unanswer(0)
    sheet.unanswer(1)
    sheet.insert(*news)


@case()
def helpers_in_own_cells(sheet: Sheet) -> None:
    """Helpers and imports in cells of the student's own, before and between."""
    sheet.insert(code("from functools import wraps"), before=sheet.cells[0])
    answer = sheet.answer(1)
    sheet.insert(code(answer["source"].replace(f"def {sheet.names[1]}", "def helper")), before=answer)
    answer["source"] = (
        f"@wraps(helper)\ndef {sheet.names[1]}(*given):\n    return helper(*given)"  # needs both when it is defined
    )


@case()
def notes_everywhere(sheet: Sheet) -> None:
    """A note after every cell."""
    for number, cell in enumerate(list(sheet.cells)):
        if cell["metadata"].get("nbgrader", {}).get("grade_id") != sheet.question:
            sheet.insert(words(f"note {number}"), after=cell)


@case()
def placeholder_left_in_a_comment(sheet: Sheet) -> None:
    """A right answer that still says NotImplementedError in a comment."""
    sheet.answer(0)["source"] += "\n# raise NotImplementedError()"
