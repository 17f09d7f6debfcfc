"""A solution's source text as a student would have written it: under the exercise's name, with what it needs from its module."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator

from autograder.exercises.registry import CourseFault, Solution
from autograder.text import Text


def answer(solution: Solution, name: str) -> str:
    """The text of an answer cell: imports, helpers, and the solution under the exercise's name.

    Exercises that the solution uses come along under another name, so that they do not stand in for the student's own answers.
    """
    module = _module(solution)
    exercises = _exercises(module)
    needed = _needed(solution, module)
    parts = [
        ast.unparse(node) for node in module.body if isinstance(node, (ast.Import, ast.ImportFrom)) and _plain(node)
    ]
    text = "\n\n".join([*(segment for _, segment in needed), _definition(solution)])
    for line, _ in needed:
        if line in exercises:
            text = _renamed(text, exercises[line], f"_{exercises[line]}")
    return "\n\n".join([*parts, _renamed(text, solution.__name__, name)])


def helpers(solution: Solution) -> list[str]:
    """The top-level definitions of its module that a solution uses, other exercises aside, as source texts in order."""
    module = _module(solution)
    return [text for line, text in _needed(solution, module) if line not in _exercises(module)]


def body(solution: Solution) -> str:
    """The source of a function's or class's body, without decorators, signature and docstring."""
    source = _definition(solution)
    definition = ast.parse(source).body[0]
    assert isinstance(definition, (ast.FunctionDef, ast.ClassDef))
    statements = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
    first = min([statements[0].lineno, *(d.lineno for d in getattr(statements[0], "decorator_list", []))])
    lines = source.split("\n")
    while lines[first - 2].strip().startswith("#"):  # a comment that stands before the first statement
        first -= 1
    return textwrap.dedent("\n".join(lines[first - 1 :]))


def _definition(solution: Solution) -> str:
    """The source without decorators."""
    source = textwrap.dedent(inspect.getsource(solution))
    definition = ast.parse(source).body[0]
    return "\n".join(source.rstrip().split("\n")[definition.lineno - 1 :])


def _renamed(source: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}\b", new, source)


def _module(solution: Solution) -> ast.Module:
    module = inspect.getmodule(solution)
    if module is None:
        raise CourseFault(Text(zh=f"找不到 {solution!r} 的源代码", en=f"the source of {solution!r} cannot be found"))
    return ast.parse(inspect.getsource(module))


def _plain(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names]
    return not any(n.startswith("autograder") for n in [getattr(node, "module", None) or "", *names])


def _needed(solution: Solution, module: ast.Module) -> list[tuple[int, str]]:
    source = inspect.getsource(inspect.getmodule(solution))  # type: ignore[arg-type]
    known = {name: node for node in module.body for name in _binds(node)}
    wanted, seen = _uses(ast.parse(_definition(solution))), set[str]()
    while todo := (wanted & known.keys()) - seen - {solution.__name__}:
        seen |= todo
        for name in todo:
            wanted |= _uses(known[name])
    nodes = {id(known[name]): known[name] for name in seen}
    # a segment starts at ``def``, so an exercise that another uses comes without its decorator
    return sorted((node.lineno, ast.get_source_segment(source, node) or "") for node in nodes.values())


def _binds(node: ast.stmt) -> Iterator[str]:
    """The names that a helper statement binds; mistakes and alternatives are no helpers."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        if not any(_decorator(d) in ("mistake", "alternative") for d in node.decorator_list):
            yield node.name
    elif isinstance(node, ast.Assign):
        yield from (t.id for t in node.targets if isinstance(t, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _exercises(module: ast.Module) -> dict[int, str]:
    """The exercises of a module by their line."""
    return {
        node.lineno: node.name
        for node in module.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and "exercise" in map(_decorator, node.decorator_list)
    }


def _decorator(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _uses(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
