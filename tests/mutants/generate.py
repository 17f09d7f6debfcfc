"""Every small slip of a solution: its source with one token changed, one keyword left out, or one call or statement skipped."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

SLIPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
}
FAMILIES = (
    ("tril", "triu"),
    ("max", "min", "mean", "sum"),
    ("sum", "mean", "amax"),
    ("any", "all"),
    ("zeros", "ones"),
    ("empty_like", "zeros_like", "ones_like"),
    ("randn", "rand", "zeros"),
    ("randn_like", "rand_like", "zeros_like", "ones_like"),
    ("arange", "zeros"),
    ("softmax", "log_softmax", "sigmoid"),
    ("masked_fill", "masked_fill_"),
    ("sqrt", "log", "square"),
    ("var", "std", "mean"),
    ("eval", "train"),
    ("float64", "float32"),
    ("bool", "uint8"),
    ("transpose", "reshape"),
    ("abs", "neg"),
    ("copy_", "add_"),
    ("query", "key", "value"),
    ("token", "position"),
    ("no_grad", "enable_grad"),
)


def mutants(solution: Callable[..., Any]) -> dict[str, ast.stmt]:
    """The changed definitions of a function or class by what was changed: ``"line 2: X.tril() -> X.triu() (1)"``.

    Line 1 is the ``def``; the number at the end counts equal changes within a line.
    """
    original = ast.parse(textwrap.dedent(inspect.getsource(solution))).body[0]
    assert isinstance(original, (ast.FunctionDef, ast.ClassDef))
    original.decorator_list = []
    ast.increment_lineno(original, 1 - original.lineno)
    parameters = {node.arg for node in ast.walk(original) if isinstance(node, ast.arg)} - {"self"}
    found: dict[str, ast.stmt] = {}
    equal = Counter[str]()
    for at, node in enumerate(ast.walk(original)):
        for number, (line, new) in enumerate(_changed(node, parameters)):
            if ast.dump(node) == ast.dump(new):
                continue
            tree = copy.deepcopy(original)
            target = list(ast.walk(tree))[at]
            _, replacement = list(_changed(target, parameters))[number]
            tree = _Replace(target, replacement).visit(tree)
            what = f"line {line}: {_first_line(node)} -> {_first_line(new)}"
            equal[what] += 1
            found[what + (f" ({equal[what]})" if equal[what] > 1 else "")] = ast.fix_missing_locations(tree)
    return found


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _changed(node: ast.AST, parameters: set[str]) -> Iterator[tuple[int, ast.AST]]:
    """Each slip at one node, with its line: copies of the node with one thing changed."""

    def put(**fields: Any) -> tuple[int, ast.AST]:
        new = copy.copy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return getattr(node, "lineno", 0), new

    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            yield from (put(op=other()) for other in SLIPS.get(type(op), ()))
            if isinstance(node, ast.AugAssign):
                yield node.lineno, ast.Pass()
        case ast.UnaryOp(operand=operand):
            yield node.lineno, operand
        case ast.Compare(ops=[op]):
            yield from (put(ops=[other()]) for other in SLIPS.get(type(op), ()))
        case ast.IfExp(body=body, orelse=orelse):
            yield put(body=orelse, orelse=body)
        case ast.Constant(value=bool(value)):
            yield put(value=not value)
        case ast.Constant(value=int(value)):
            yield from (put(value=other) for other in dict.fromkeys((value + 1, value - 1, -value)) if other != value)
        case ast.Constant(value=float(value)):
            yield from (put(value=other) for other in dict.fromkeys((value + 1.0, -value, value * 2)) if other != value)
        case ast.Name(id=name, ctx=ast.Load()) if name in parameters:
            yield from (put(id=other) for other in sorted(parameters - {name}))
        case ast.Slice(lower=lower, upper=upper):
            for end, value in (("lower", lower), ("upper", upper)):
                if value is not None:
                    one = ast.Constant(1)
                    yield put(**{end: None})
                    yield from (put(**{end: ast.BinOp(value, op, one)}) for op in (ast.Add(), ast.Sub()))
        case ast.Expr(value=ast.Call()):
            yield node.lineno, ast.Pass()
        case ast.If(test=test):
            yield put(test=ast.UnaryOp(ast.Not(), test))
        case ast.Attribute(attr=name):
            family = dict.fromkeys(other for family in FAMILIES if name in family for other in family)
            yield from (put(attr=other) for other in family if other != name)
        case ast.Call(func=func, args=args, keywords=keywords):
            for i in range(len(keywords)):
                yield put(keywords=keywords[:i] + keywords[i + 1 :])
            match func:
                case ast.Attribute(value=ast.Call() | ast.BinOp() | ast.Subscript() as value):
                    yield node.lineno, value
                case ast.Attribute(value=ast.Name(id=name) as value) if name in parameters:
                    yield node.lineno, value
            if len(args) == 2 and getattr(func, "attr", "") != "transpose":  # the order of two axes means nothing
                yield put(args=args[::-1])
        case ast.Tuple(elts=[first, second, *rest], ctx=ast.Load()):
            yield put(elts=[second, first, *rest])
