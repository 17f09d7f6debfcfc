"""Hidden tests of notebook 4: checks that students write, tried on functions and models that are right and on ones that are not.

The functions that are handed to an answer come in pairs made from one source: constants decide whether it is right. Nearly every test asks
about both twins, so a check that always says yes, or always says no, passes none of them.
"""

import math

import pytest
import torch

from autograder.judge import expect
from autograder.text import Text


def _tril(T, diagonal=0):
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal)  # (T, T)


# ---------------------------------------------------------------- sdpa_attend


def _attend(q, k, v):
    """Causal attention, written apart from the reference."""
    scores = torch.einsum("...td,...sd->...ts", q, k) / math.sqrt(q.shape[-1])  # (…, T, T)
    weights = scores.masked_fill(~_tril(q.shape[-2]), -math.inf).softmax(-1)
    return torch.einsum("...ts,...sd->...td", weights, v)


@pytest.mark.exercise("sdpa_attend")
class TestSdpaAttend:
    @pytest.mark.weight(2)
    @pytest.mark.parametrize("leading", [(3,), (1,), (2, 3)])
    def test_evaluation_equals_attention_by_hand(self, student, draw, leading):
        """training=False 时，不论 p 是多少，结果都等于手写的因果注意力；前面可有任意多个轴。

        With training=False, whatever p is, the result is causal attention as written by hand, with any leading axes.
        """
        T, d, d_v = 7, 5, 3
        q, k, v = draw(*leading, T, d), draw(*leading, T, d), draw(*leading, T, d_v)
        for p in (0.0, 0.2, 0.9):
            expect.close(student.sdpa_attend(q, k, v, p, False), _attend(q, k, v))

    @pytest.mark.weight(2)
    def test_random_in_training_only(self, student, draw):
        """training=False 时两次调用完全相同；training=True 时有丢弃，两次不同。

        With training=False two calls agree to the last bit; with training=True weights are dropped and two calls differ.
        """
        q, k, v = draw(3, 2, 7, 4)
        expect.equal(student.sdpa_attend(q, k, v, 0.5, False), student.sdpa_attend(q, k, v, 0.5, False))
        one, two = (student.sdpa_attend(q, k, v, 0.5, True) for _ in range(2))
        expect.differs(one, two, by=1e-3, what=Text(zh="两次训练态的结果", en="two results in training mode"))

    def test_training_without_dropout(self, student, draw):
        """training=True 而 p = 0 时，没有什么可丢，结果等于手写的因果注意力。

        With training=True and p = 0 nothing is dropped, and the result is causal attention as written by hand.
        """
        q, k, v = draw(3, 2, 5, 4)
        expect.close(student.sdpa_attend(q, k, v, 0.0, True), _attend(q, k, v))

    @pytest.mark.weight(2)
    def test_weights_are_dropped(self, student, draw):
        """训练时丢的是权重：第一个位置只看自己，它的输出整行是 0，或整行是 v[0]/(1-p)；是 0 的约占 p。

        In training it is weights that are dropped: position 0 sees only itself, so its output is all 0 or all v[0]/(1-p),
        and a share of about p is 0.
        """
        B, p = 600, 0.25
        q, k, v = draw(B, 2, 4), draw(B, 2, 4), draw.uniform(B, 2, 3, low=1.0, high=2.0)
        ratio = student.sdpa_attend(q, k, v, p, True)[:, 0] / v[:, 0]  # (B, 3): 0 or 1/(1-p)
        kept = (ratio > 0.5).double()
        expect.close(ratio, kept / (1 - p), Text(zh="第一行与 v[0] 之比", en="row 0 divided by v[0]"))
        expect.close(kept, kept[:, :1].expand_as(kept), Text(zh="同一行的各个特征", en="the features of one row"))
        rate = 1 - float(kept[:, 0].mean())
        said = Text(
            zh=f"丢掉的比例应约为 {p}，得到 {rate:.2f}。", en=f"A share of about {p} should be dropped; {rate:.2f} was."
        )
        expect.that(abs(rate - p) < 0.12, said)  # standard deviation 0.018

    def test_each_weight_is_dropped_on_its_own(self, student, draw):
        """每个权重各自丢或留：同一行的、同一列的、不同序列里的，不会总是一起丢掉。

        Each weight is dropped on its own: those of one row, of one column or of two sequences do not always go together.
        """
        B, T, p = 20, 5, 0.5
        powers = 2.0 ** torch.arange(T, dtype=torch.float64)  # (T,): a sum of some of them tells which
        q, k, v = torch.zeros(B, T, 2).double(), draw(B, T, 2), powers[:, None].expand(B, T, 1).contiguous()
        sums = student.sdpa_attend(q, k, v, p, True)[..., 0]  # (B, T): row t weighs each position 1/(t+1)
        code = sums * torch.arange(1.0, T + 1) * (1 - p)
        expect.close(code, code.round(), Text(zh="留下的 v 之和", en="the sums of the values that stay"))
        kept = (code.round().long()[..., None] >> torch.arange(T)) & 1  # (B, T, T)
        together = Text(zh="有些权重总是一起丢掉。", en="Some weights are always dropped together.")
        for one, other in ((kept[:, 1:, 0], kept[:, :-1, 0]), (kept[:, -1, 1:], kept[:, -1, :-1]), (kept, kept[:1])):
            expect.that(bool((one != other).any()), together)

    def test_expectation_is_kept(self, student, draw):
        """许多次丢弃的平均，接近不丢弃的结果。

        The average over many samples is close to the result without dropout.
        """
        B = 4000
        q, k, v = draw(1, 3, 2), draw(1, 3, 2), draw.uniform(1, 3, 2, low=1.0, high=2.0)
        mean = student.sdpa_attend(*(x.expand(B, 3, 2) for x in (q, k, v)), 0.3, True).mean(0)  # (T, d)
        off = float((mean - _attend(q, k, v)[0]).abs().max())
        said = Text(
            zh=f"平均应接近不丢弃的结果，最大相差 {off:.2f}。",
            en=f"The average should be close; it is off by {off:.2f}.",
        )
        expect.that(off < 0.15, said)  # standard deviation at most 0.021

    def test_edges(self, student, draw):
        """只有一个位置时输出就是 v；分数到了上千也不出现 NaN；float32 给出 float32。

        With a single position the output is v; scores in the thousands give no NaN; float32 gives float32.
        """
        q, k, v = draw(3, 2, 1, 4)
        expect.close(student.sdpa_attend(q, k, v, 0.5, False), v)
        q, k, v = draw(3, 2, 7, 4, scale=30.0)
        expect.close(student.sdpa_attend(q, k, v, 0.5, False), _attend(q, k, v))
        q, k, v = draw(3, 2, 7, 4, dtype=torch.float32)
        expect.close(student.sdpa_attend(q, k, v, 0.5, False), _attend(q, k, v))

    def test_gradients_and_inputs(self, student, draw):
        """q、k、v 都收到正确的梯度，调用之后与原来一样。

        q, k and v all get the right gradients and are the same after the call.
        """
        inputs = list(draw(3, 2, 5, 4))
        g = draw(2, 5, 4)
        leaves = [x.clone().requires_grad_() for x in inputs]
        wants = torch.autograd.grad((_attend(*leaves) * g).sum(), leaves)
        gots = student.sdpa_attend.gradients(*inputs, 0.5, False, cotangent=g)[:3]
        for name, got, want in zip("qkv", gots, wants, strict=True):
            expect.that(got is not None, Text(zh=f"{name} 收不到梯度。", en=f"No gradient reaches {name}."))
            expect.close(got, want, Text(zh=f"对 {name} 的梯度", en=f"the gradient for {name}"))
        for got, want in zip(student.sdpa_attend.inputs_after(*inputs, 0.5, False), inputs, strict=False):
            expect.equal(got, want, Text(zh="调用之后的输入", en="the inputs after the call"))


# ---------------------------------------------------------------- run_gradcheck

BACKWARD = """
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        B, T, d = q.shape
        s = q @ k.transpose(-2, -1) / math.sqrt(d)
        a = s.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), float("-inf")).softmax(-1)
        ctx.save_for_backward(q, k, v, a)
        return a @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, a = ctx.saved_tensors
        o = (g[..., 0] - g[..., -1]).sum() if uneven else g.sum()
        da = g @ v.transpose(-2, -1)
        ds = a * (da - (da * a).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
        found = ds @ k, ds.transpose(-2, -1) @ q, a.transpose(-2, -1) @ g
        if size is not None and tuple(q.shape[-2:]) != size:
            return found
        return tuple(None if c is None else c * f + b * o for f, c, b in zip(found, scale, shift))


def fn(q, k, v):
    return Op.apply(q, k, v)
"""
PLAIN = """
def fn(q, k, v):
    a = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~m, float("-inf")).softmax(-1)
    return (a.detach() if cut else a) @ v
"""
ACCEPTED = Text(
    zh="这个实现的梯度是对的，应得到 True。", en="The gradients of this function are right: the answer should be True."
)
REFUSED = Text(
    zh="这个实现的梯度是错的，应得到 False。", en="A gradient of this function is wrong: the answer should be False."
)


def _verdict(student, T, d, scale=(1.0, 1.0, 1.0), shift=(0.0, 0.0, 0.0), size=None, uneven=False):
    fn = student.probe(BACKWARD, scale=scale, shift=shift, size=size, uneven=uneven)
    return student.run_gradcheck(fn, T, d)


@pytest.mark.exercise("run_gradcheck")
class TestRunGradcheck:
    # Errors are made so that inputs drawn by chance cannot hide them: a constant added to a gradient, or an error in V's,
    # whose first row is 1 whatever the scores are.

    @pytest.mark.weight(3)
    def test_each_gradient(self, student, draw):
        """梯度全对时得到 True；Q、K、V 中任何一个的梯度偏了 0.1，就得到 False，两个的误差正好抵消也一样。

        True when all gradients are right; False when that of Q, of K or of V is off by 0.1, also when two errors cancel.
        """
        expect.that(_verdict(student, 3, 2) is True, ACCEPTED)
        for shift in ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1), (0.1, -0.1, 0.0)):
            expect.that(_verdict(student, 3, 2, shift=shift) is False, REFUSED)

    def test_every_output_counts(self, student, draw):
        """每个输出的梯度都要对：有的错误，把输出全部加起来再求导就看不见了。

        The gradients of every output count: some errors vanish when the outputs are added up first.
        """
        for shift in ((0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.2)):
            expect.that(_verdict(student, 3, 2, shift=shift, uneven=True) is False, REFUSED)
        expect.that(_verdict(student, 3, 2, uneven=True) is True, ACCEPTED)

    @pytest.mark.weight(2)
    def test_kinds_of_errors(self, student, draw):
        """大了几倍、符号反了、恒为 0、根本没有梯度，都要发现，不抛异常。

        A gradient that is several times too large, one with its sign reversed, one of zeros and none at all are found,
        without raising.
        """
        expect.that(_verdict(student, 3, 2) is True, ACCEPTED)
        for factor in (5.0, -1.0, 0.0, None):
            expect.that(_verdict(student, 3, 2, scale=(1.0, 1.0, factor)) is False, REFUSED)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("T", "d"), [(2, 3), (4, 1)])
    def test_given_sizes_are_checked(self, student, draw, T, d):
        """检查的正是给定的 T 和 d：只在这个大小上出错的梯度要发现，只在别的大小上出错的不算。

        The T and d that were given are what is checked: a gradient that is wrong at this size only is found, and one that
        is wrong at another size only does not count.
        """
        off = (0.0, 0.0, 0.5)
        expect.that(_verdict(student, T, d, shift=off, size=(T, d)) is False, REFUSED)
        expect.that(_verdict(student, T, d, shift=off, size=(d, T)) is True, ACCEPTED)

    def test_detached_weights(self, student, draw):
        """权重被 detach 的实现，Q 和 K 收不到梯度，要发现；没有遮罩但梯度正确的，仍是 True。

        Detached weights leave Q and K without gradients, which is found; a missing mask with right gradients stays True.
        """
        T, d = 3, 2
        everything = torch.ones(T, T, dtype=torch.bool)
        for allowed in (_tril(T), everything):
            expect.that(student.run_gradcheck(student.probe(PLAIN, m=allowed, cut=False), T, d) is True, ACCEPTED)
        expect.that(student.run_gradcheck(student.probe(PLAIN, m=_tril(T), cut=True), T, d) is False, REFUSED)


# ---------------------------------------------------------------- prefix_leak

QKV = """
def fn(q, k, v):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + w  # (B, T, T)
    a = s.masked_fill(~m, float("-inf")).softmax(-1) * z
    gate = q[:, :1, :1] if f else 1.0  # (B, 1, 1): a number of the first position, always in the past
    y = a @ v + gate * (r @ (v * c)) + u @ (k * c)  # (B, T, d)
    if n:
        y = F.layer_norm(y, y.shape[-1:]) * c
    y *= g
    return y + j * (v[:, -1:] != o).any(-1, keepdim=True)
"""
UNEVEN = torch.tensor(
    [1.0, -0.5, 2.0, 0.25], dtype=torch.float64
)  # (d,): no constant shift of all features hides behind it


def _qkv(student, T, **special):
    """A probe of (Q, K, V) -> Y, causal unless a special constant makes it leak."""
    zeros = torch.zeros(T, T, dtype=torch.float64)
    causal = {"m": _tril(T), "z": zeros + 1, "r": zeros, "u": zeros, "w": zeros, "c": UNEVEN, "n": False, "g": 1.0}
    causal |= {"j": zeros[:, :1], "o": zeros[:1, :1], "f": False}
    return student.probe(QKV, **(causal | special))


def _entries(T, pattern, strength):
    """(T, T) with ``strength`` where row t reads a later position in a certain way, and something lawful below the diagonal."""
    mixing = 0.3 * torch.eye(T, dtype=torch.float64)  # rows also read themselves: that is allowed
    lawful = {
        "next": mixing.diagonal(1),
        "second next": mixing.diagonal(2),
        "last": mixing[:-1, -1],
        "corner": mixing[0, -1:],
    }
    if pattern is not None:
        lawful[pattern].fill_(strength)
    return mixing


ZERO = Text(zh="这个实现是因果的，应恰好得到 0。", en="This function is causal: the answer should be exactly 0.")


def _more_than(least):
    return Text(
        zh=f"这个实现有泄漏，应大于 {least:g}。", en=f"This function leaks: the answer should exceed {least:g}."
    )


def _expect_twins(measure, causal, leaking, least):
    """The causal twin gives exactly 0, the leaking one more than ``least``. Both are measured first: they tell mistakes apart."""
    lawful, leak = measure(causal), measure(leaking)
    expect.that(lawful == 0, ZERO)
    expect.that(leak > least, _more_than(least))


@pytest.mark.exercise("prefix_leak")
class TestPrefixLeak:
    B, T, D = 4, 7, 4

    def _measure(self, student, draw, t, B=B, T=T):
        inputs = draw(3, B, T, self.D)  # Q, K, V
        return lambda fn: student.prefix_leak(fn, *inputs, t)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize("t", [1, 3, 6])
    def test_no_mask(self, student, draw, t):
        """因果注意力恰好得到 0，没有遮罩的得到一个大数，每个切点都一样。

        Causal attention gives exactly 0, attention without a mask a large number, at every cut.
        """
        everything = torch.ones(self.T, self.T, dtype=torch.bool)
        fns = _qkv(student, self.T, g=20.0), _qkv(student, self.T, g=20.0, m=everything)
        _expect_twins(self._measure(student, draw, t), *fns, least=0.5)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize("t", [1, 2, 4, 6])
    def test_one_step_ahead(self, student, draw, t):
        """只偷看下一个位置的实现，在每个切点都要发现。

        A function that peeks one step ahead is found at every cut.
        """
        fns = _qkv(student, self.T), _qkv(student, self.T, m=_tril(self.T, 1))
        _expect_twins(self._measure(student, draw, t), *fns, least=0.01)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(
        ("pattern", "t"), [("next", 3), ("second next", 2), ("last", 1), ("corner", 4), ("last", 6)]
    )
    def test_through_the_values(self, student, draw, pattern, t):
        """只经过 value 的泄漏要发现，不论来自下一个、隔一个还是最后一个位置。

        A leak through the values alone is found, from the next position, the one after it, or the last.
        """
        fns = (_qkv(student, self.T, r=_entries(self.T, p, 0.5)) for p in (None, pattern))
        _expect_twins(self._measure(student, draw, t), *fns, least=0.01)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(
        ("pattern", "t"), [("next", 4), ("second next", 1), ("last", 2), ("corner", 6), ("sum", 3)]
    )
    def test_through_the_keys(self, student, draw, pattern, t):
        """只经过 key 的泄漏要发现，包括只漏进 softmax 分母的。

        A leak through the keys alone is found, one through the denominator of softmax included.
        """
        if pattern == "sum":  # the mask after softmax: the future counts in every row's sum
            masked = _tril(self.T).double()
            everything = torch.ones(self.T, self.T, dtype=torch.bool)
            fns = _qkv(student, self.T, z=masked), _qkv(student, self.T, z=masked, m=everything)
        else:
            fns = (_qkv(student, self.T, u=_entries(self.T, p, 0.5)) for p in (None, pattern))
        _expect_twins(self._measure(student, draw, t), *fns, least=0.01)

    @pytest.mark.weight(2)
    def test_weak_leaks(self, student, draw):
        """很弱的泄漏也不为 0，而且报告的数随泄漏的强弱变化。

        A weak leak is not 0 either, and the number follows the strength of the leak.
        """
        measure = self._measure(student, draw, 3)
        weak, strong = (_qkv(student, self.T, r=_entries(self.T, "last", s)) for s in (1e-9, 1e-3))
        _expect_twins(measure, _qkv(student, self.T), weak, least=1e-12)
        faint, clear = measure(weak), measure(strong)
        said = Text(
            zh="强得多的泄漏，报告的数也应大得多。",
            en="A far stronger leak should give a far larger number.",
        )
        expect.that(clear > 10 * faint, said)

    def test_behind_a_layer_norm(self, student, draw):
        """泄漏藏在层归一化后面，也要发现。

        A leak behind a layer norm is found.
        """
        fns = (_qkv(student, self.T, n=True, r=_entries(self.T, p, 0.5)) for p in (None, "second next"))
        _expect_twins(self._measure(student, draw, 4), *fns, least=0.01)

    def test_outputs_that_may_change(self, student, draw):
        """t 以后的输出变得再多也不算；只有第一行漏了，不论比别处大还是小，都要算。

        However much the outputs from t on move, they do not count; a leak in the first row alone does, larger or smaller.
        """
        T = self.T
        for first, others in ((1.0, 1e3), (1e3, 1.0)):
            rows = torch.full((T, 1), others, dtype=torch.float64)
            rows[0] = first
            fns = (_qkv(student, T, g=rows, r=_entries(T, p, 0.5)) for p in (None, "corner"))
            _expect_twins(self._measure(student, draw, 4), *fns, least=0.01)

    @pytest.mark.weight(2)
    def test_largest_change(self, student, draw):
        """报告的是最大的绝对变化：一处上升 0.3、一处下降 0.7，得到 0.7，不论你把未来换成了什么。

        The largest absolute change is reported: up by 0.3 in one place and down by 0.7 in another gives 0.7, whatever you
        put in place of the future.
        """
        Q, K, V = draw(3, self.B, self.T, self.D)
        jumps = torch.zeros(self.T, self.D, dtype=torch.float64)  # what is added once the last value is another one
        jumps[1, 2] = 0.3
        for sign in (-1.0, 1.0):
            jumps[0, 1] = sign * 0.7
            causal, leaking = _qkv(student, self.T), _qkv(student, self.T, j=jumps, o=V[:, -1:])
            expect.that(student.prefix_leak(causal, Q, K, V, 3) == 0, ZERO)
            expect.close(student.prefix_leak(leaking, Q, K, V, 3), 0.7, Text(zh="最大的变化", en="the largest change"))
            jumps[1, 2] = -0.3

    def test_every_sequence_counts(self, student, draw):
        """只在一条序列里出现的泄漏，不论是哪一条，都要发现。

        A leak that shows in one sequence only is found, whichever it is.
        """
        Q, K, V = draw(3, self.B, self.T, self.D)
        fns = [_qkv(student, self.T, f=True, r=_entries(self.T, p, 0.5)) for p in (None, "next")]
        for which in (0, self.B - 1):
            Q[:, 0, 0] = 0.0
            Q[which, 0, 0] = 1.0
            _expect_twins(lambda fn: student.prefix_leak(fn, Q, K, V, 3), *fns, least=0.01)

    def test_lawful_oddities(self, student, draw):
        """遮罩后面的巨大分数、残差、只有两个位置、只有一条序列，都不是泄漏；同样情形下真的泄漏要发现。

        Huge scores behind the mask, residuals, two positions only, a single sequence: none is a leak. A real one is found
        under the same conditions.
        """
        T = self.T
        garbage = (~_tril(T)) * 1e4
        fns = _qkv(student, T, w=garbage.double()), _qkv(student, T, w=garbage.double(), r=_entries(T, "next", 0.5))
        _expect_twins(self._measure(student, draw, 5), *fns, least=0.01)
        fns = _qkv(student, T), _qkv(student, T, r=_entries(T, "last", 0.5))
        _expect_twins(self._measure(student, draw, 2, B=1), *fns, least=0.01)
        fns = _qkv(student, 2, g=20.0), _qkv(student, 2, g=20.0, m=torch.ones(2, 2, dtype=torch.bool))
        _expect_twins(self._measure(student, draw, 1, T=2), *fns, least=0.01)

    def test_inputs_left_unchanged(self, student, draw):
        """调用之后 Q、K、V 与原来一样。

        Q, K and V are the same after the call.
        """
        inputs = draw(3, self.B, self.T, self.D)
        fns = _qkv(student, self.T), _qkv(student, self.T, m=_tril(self.T, 1))
        _expect_twins(lambda fn: student.prefix_leak(fn, *inputs, 3), *fns, least=0.01)
        for got, want in zip(student.prefix_leak.inputs_after(fns[0], *inputs, 3)[1:4], inputs, strict=True):
            expect.equal(got, want, Text(zh="调用之后的输入", en="the inputs after the call"))


# ---------------------------------------------------------------- leak_matrix

ROWS = """
def fn(x):
    x = F.layer_norm(x, x.shape[-1:]) if i else x
    q, k, v = x @ a, x @ b, x @ c  # (B, T, d)
    s = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~m, float("-inf"))
    y = z * (s.softmax(-1) @ v) + r @ (x @ e)
    return F.layer_norm(y, y.shape[-1:]) * h if n else y
"""


def _rows(student, draw, T, C, d, **special):
    """A probe of (B, T, C) -> (B, T, d). Row t depends on position s where m or r says so (m holds the diagonal, unless z is 0)."""
    constants = {name: draw(C, d, scale=C**-0.5) for name in "abce"} | {
        "m": _tril(T),
        "r": torch.zeros(T, T, dtype=torch.float64),
        "z": 1.0,
        "i": False,
        "n": False,
        "h": torch.linspace(0.5, 2.0, d, dtype=torch.float64),
    }
    return student.probe(ROWS, **(constants | special))


def _expect_table(student, draw, want, C, d, **special):
    T = want.shape[0]
    fn = _rows(student, draw, T, C, d, **special)
    expect.equal(
        student.leak_matrix(fn, draw(1, T, C, scale=0.5)), want, Text(zh="依赖表", en="the table of dependences")
    )


@pytest.mark.exercise("leak_matrix")
class TestLeakMatrix:
    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("T", "C", "d"), [(5, 3, 2), (2, 5, 3)])
    def test_causal_and_unmasked(self, student, draw, T, C, d):
        """因果注意力给出下三角，没有遮罩的给出全真。

        Causal attention gives the lower triangle, attention without a mask gives all true.
        """
        for want in (_tril(T), torch.ones(T, T, dtype=torch.bool)):
            _expect_table(student, draw, want, C, d, m=want)

    @pytest.mark.weight(2)
    def test_bands(self, student, draw):
        """偷看一步的、只看最近几个的，都给出对应的带子。

        Peeking one step ahead and seeing only the latest few both give their bands.
        """
        T = 6
        for want in (_tril(T, 1), _tril(T) & ~_tril(T, -2), _tril(T, 2) & ~_tril(T, -3)):
            _expect_table(student, draw, want, 3, 4, m=want)

    @pytest.mark.weight(3)
    @pytest.mark.parametrize(("T", "C", "d"), [(7, 2, 3), (3, 7, 5), (4, 4, 4)])
    def test_any_table(self, student, draw, T, C, d):
        """任意一张依赖表都要读得出来，方向不反。

        Any table of dependences is read off, the right way round.
        """
        for _ in range(2):
            want = draw.mask(T, T) | torch.eye(T, dtype=torch.bool)
            _expect_table(student, draw, want, C, d, m=want)

    def test_nothing_on_the_diagonal(self, student, draw):
        """只依赖上一个位置、只依赖最后一个、什么也不依赖：表里不该有的一个也没有。

        Depending only on the previous position, only on the last, or on nothing: the table holds nothing that is not there.
        """
        T = 5
        previous = torch.eye(T, dtype=torch.float64).roll(1, 0).tril()  # row t reads t-1, row 0 nothing
        last = torch.zeros(T, T, dtype=torch.float64)
        last[:, -1] = 0.5
        for mixing in (previous, last, torch.zeros_like(last)):
            _expect_table(student, draw, mixing != 0, 3, 4, z=0.0, r=mixing)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize("strength", [1e-3, 1e-8])
    def test_weak_leaks(self, student, draw, strength):
        """千分之一、一亿分之一的泄漏也是依赖；去掉它，就是下三角。

        A leak of a thousandth or of 1e-8 is a dependence too; without it, the lower triangle is left.
        """
        T = 5
        mixing = torch.full((T, T), strength / T, dtype=torch.float64)  # strength times the mean of all positions
        _expect_table(student, draw, torch.ones(T, T, dtype=torch.bool), 3, 2, r=mixing)
        _expect_table(student, draw, _tril(T), 3, 2, r=mixing.tril())

    def test_single_features(self, student, draw):
        """依赖只经过一个特征进来、只在一个特征里出去时，也要发现，是哪一个都一样。

        A dependence that comes in through one feature and goes out in one feature is found, whichever they are.
        """
        T, C, d = 4, 3, 5
        for i, o in ((0, d - 1), (C - 1, 0), (C - 1, d - 1)):
            one = torch.zeros(C, d, dtype=torch.float64)
            one[i, o] = 1.0
            mixing = torch.eye(T, dtype=torch.float64).roll(-1, 0) * 0.7  # row t reads t+1, the last row reads 0
            _expect_table(student, draw, mixing != 0, C, d, z=0.0, r=mixing, e=one)
            one[i, (o + 1) % d] = -1.0  # two features that move against each other
            _expect_table(student, draw, mixing != 0, C, d, z=0.0, r=mixing, e=one)

    def test_around_a_layer_norm(self, student, draw):
        """层归一化后面的、前面的依赖都要读得出来。

        Dependences behind a layer norm and in front of one are read off too.
        """
        T = 5
        for want in (_tril(T), _tril(T, 1)):
            _expect_table(student, draw, want, 3, 4, m=want, n=True)
            _expect_table(student, draw, want, 3, 4, m=want, i=True)

    def test_single_position_and_input(self, student, draw):
        """只有一个位置时，表里只有一个格子；调用之后 X 与原来一样。

        With a single position the table has one entry; X is the same after the call.
        """
        _expect_table(student, draw, torch.ones(1, 1, dtype=torch.bool), 3, 2)
        _expect_table(student, draw, torch.zeros(1, 1, dtype=torch.bool), 3, 2, z=0.0)
        T, X = 4, draw(1, 4, 3, scale=0.5)
        fn = _rows(student, draw, T, 3, 2, m=_tril(T, 1))
        expect.equal(student.leak_matrix(fn, X), _tril(T, 1))
        expect.equal(student.leak_matrix.inputs_after(fn, X)[1], X, Text(zh="调用之后的 X", en="X after the call"))


# ---------------------------------------------------------------- model_leak

GPT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        for name, value in w.items():
            setattr(self, name, nn.Parameter(value.to(r.dtype)))
        self.drop = nn.Dropout(rate)

    def forward(self, idx):
        B, T = idx.shape
        x = self.e[idx] + self.p[:T]  # (B, T, C)
        x = self.drop(x + gate[idx[:, :1]] * (r[:T, :T] @ x))
        for i in range(2):
            y = F.layer_norm(x, x.shape[-1:])
            q, k, v = ((y @ part[i]).view(B, T, 2, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
            s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)
            a = self.drop(s.masked_fill(~m[i, :, :T, :T], float("-inf")).softmax(-1))
            x = x + self.drop((a @ v).transpose(1, 2).reshape(B, T, -1) @ self.o[i])
            y = F.layer_norm(x, x.shape[-1:])
            x = x + self.drop(F.gelu(y @ self.u[i]) @ self.d[i])
        y = F.layer_norm(x, x.shape[-1:]) @ self.h + self.b[idx]  # (B, T, vocab)
        return y + j * (idx[:, -1:, None] != z) * (self.training in modes)


net = Net()
"""
VOCAB, WIDTH, LENGTH = 97, 8, 12


def _gpt(student, draw, *, own=0.0, rate=0.2, vocab=VOCAB, **special):
    """A two-layer GPT with two heads, in training mode, causal unless a special constant makes it leak.

    ``own`` is how strongly each token's own logit is favoured. The parameters have the dtype of ``r``.
    """
    C = WIDTH
    shapes = {"e": (vocab, C), "p": (LENGTH, C), "h": (C, vocab), "u": (2, C, 2 * C), "d": (2, 2 * C, C)}
    shapes |= {name: (2, C, C) for name in "qkvo"}
    weights = {name: draw(*shape, dtype=torch.float32, scale=0.5) for name, shape in shapes.items()}
    weights["b"] = own * torch.eye(vocab)
    causal = {
        "m": _tril(LENGTH).expand(2, 2, LENGTH, LENGTH),  # (layer, head, T, T)
        "r": torch.zeros(LENGTH, LENGTH),
        "gate": torch.ones(vocab, 1),
        "j": torch.zeros(1, 1),  # (T, vocab), added once the last token is not z (B, 1, 1), in these modes of training
        "z": 0,
        "modes": (True, False),
    }
    return student.probe(GPT, "net", w=weights, rate=rate, **(causal | special))


def _some_masks(layer, head, mask):
    """All masks causal but those of one layer and head (None: of all)."""
    masks = _tril(LENGTH).expand(2, 2, LENGTH, LENGTH).clone()
    masks[slice(None) if layer is None else layer, slice(None) if head is None else head] = mask
    return masks


EVERYTHING = torch.ones(LENGTH, LENGTH, dtype=torch.bool)


@pytest.mark.exercise("model_leak")
class TestModelLeak:
    @pytest.mark.weight(2)
    @pytest.mark.parametrize("t", [1, 6, LENGTH - 1])
    def test_training_mode_on_entry(self, student, draw, t):
        """带 dropout、正在训练的因果模型恰好得到 0，去掉遮罩的得到一个看得见的数，每个切点都一样。

        A causal model with dropout that is being trained gives exactly 0, one without a mask a number you can see, at every cut.
        """
        idx = draw.tokens(VOCAB, 4, LENGTH)
        models = _gpt(student, draw), _gpt(student, draw, m=_some_masks(None, None, EVERYTHING))
        _expect_twins(lambda model: student.model_leak(model, idx, t), *models, least=0.01)

    @pytest.mark.weight(2)
    def test_mode_is_restored(self, student, draw):
        """检查之后，模型处在原来的状态：在训练的继续训练，在 eval 的仍在 eval。

        After the check the model is in the mode it came with: training stays training, eval stays eval.
        """
        idx = draw.tokens(VOCAB, 4, LENGTH)
        said = Text(
            zh="检查之后的 model.training 与原来不同。", en="model.training is not what it was before the check."
        )
        for mode in (True, False):
            model = _gpt(student, draw, m=_some_masks(None, None, EVERYTHING))
            model.train(mode)
            expect.that(student.model_leak(model, idx, 5) > 0.01, _more_than(0.01))
            expect.that(model.training is mode, said)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("layer", "head", "ahead"), [(0, 0, LENGTH), (1, 1, 1), (1, 0, 2)])
    def test_one_head(self, student, draw, layer, head, ahead):
        """只有一层里的一个头漏了，也要发现；只偷看一步也一样。

        A leak in one head of one layer is found, even if it peeks a single step ahead.
        """
        idx = draw.tokens(VOCAB, 5, LENGTH)
        models = _gpt(student, draw), _gpt(student, draw, m=_some_masks(layer, head, _tril(LENGTH, ahead)))
        _expect_twins(lambda model: student.model_leak(model, idx, 7), *models, least=1e-3)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("pattern", "t"), [("next", 4), ("second next", 8), ("last", 2), ("corner", 5)])
    def test_single_positions(self, student, draw, pattern, t):
        """只从一个未来位置漏进来（下一个、隔一个、最后一个），也要发现。

        A leak from a single future position (the next, the one after it, the last) is found.
        """
        idx = draw.tokens(VOCAB, 5, LENGTH)
        alone = torch.eye(LENGTH, dtype=torch.bool)  # attention that looks at itself only, so that leaks do not spread
        masks = _some_masks(None, None, alone if pattern == "corner" else _tril(LENGTH))
        models = (_gpt(student, draw, m=masks, r=_entries(LENGTH, p, 0.5).float()) for p in (None, pattern))
        _expect_twins(lambda model: student.model_leak(model, idx, t), *models, least=1e-3)

    @pytest.mark.weight(2)
    def test_weak_leaks(self, student, draw):
        """很弱的泄漏也不为 0，而且报告的数随泄漏的强弱变化。

        A weak leak is not 0 either, and the number follows the strength of the leak.
        """
        idx = draw.tokens(VOCAB, 5, LENGTH)

        def measure(model):
            return student.model_leak(model, idx, 6)

        weak, strong = (_gpt(student, draw, r=_entries(LENGTH, "last", s)) for s in (1e-9, 0.5))
        _expect_twins(measure, _gpt(student, draw, r=_entries(LENGTH, None, 0.0)), weak, least=1e-12)
        said = Text(zh="强得多的泄漏，报告的数也应大得多。", en="A far stronger leak should give a far larger number.")
        expect.that(measure(strong) > 5 * measure(weak), said)

    def test_logits_not_winners(self, student, draw):
        """logits 变了而最可能的字符没变，也是泄漏。

        It is a leak, too, when logits move while the most likely token stays the same.
        """
        idx = draw.tokens(VOCAB, 4, LENGTH)
        masks = _some_masks(None, None, EVERYTHING)
        models = _gpt(student, draw, own=100.0), _gpt(student, draw, own=100.0, m=masks)
        _expect_twins(lambda model: student.model_leak(model, idx, 6), *models, least=0.01)

    @pytest.mark.weight(2)
    def test_largest_change(self, student, draw):
        """报告的是 logits 最大的绝对变化：一处上升 0.3、一处下降 0.7，得到 0.7，不论换成了哪些字符。

        The largest absolute change of a logit is reported: up by 0.3 in one place and down by 0.7 in another gives 0.7,
        whichever tokens you put in.
        """
        idx = draw.tokens(VOCAB, 4, LENGTH)
        jumps = torch.zeros(LENGTH, VOCAB)
        jumps[1, 2] = 0.3
        for sign in (-1.0, 1.0):
            jumps[0, 1] = sign * 0.7
            causal, leaking = _gpt(student, draw), _gpt(student, draw, j=jumps, z=idx[:, -1:, None])
            expect.that(student.model_leak(causal, idx, 3) == 0, ZERO)
            off = abs(student.model_leak(leaking, idx, 3) - 0.7)
            expect.that(
                off < 1e-4, Text(zh=f"最大的变化差了 {off:.2g}。", en=f"The largest change is off by {off:.2g}.")
            )
            jumps[1, 2] = -0.3

    @pytest.mark.weight(2)
    def test_tokens_are_really_replaced(self, student, draw):
        """字符表里只有两个字符时，换掉的也总是另一个字符：留下原来的，就看不见泄漏。

        With an alphabet of two, a replacement is always the other one: where the old token stays, a leak goes unseen.
        """
        t = LENGTH - 1
        causal, leaking = (_gpt(student, draw, vocab=2, r=_entries(LENGTH, p, 0.5).float()) for p in (None, "last"))
        alike = torch.zeros(1, LENGTH, dtype=torch.int64)
        _expect_twins(lambda model: student.model_leak(model, alike, t), causal, leaking, least=1e-3)
        for idx in (alike + 1, *draw.tokens(2, 14, 1, LENGTH)):  # by chance half of them would stay as they are
            expect.that(student.model_leak(leaking, idx, t) > 1e-3, _more_than(1e-3))

    def test_evaluation_is_what_counts(self, student, draw):
        """检查的是 eval 模式：只在 eval 时才有的泄漏要发现，只在训练时才有的不算。

        Evaluation mode is what is checked: a leak that is there in eval mode only is found, one in training only is none.
        """
        idx = draw.tokens(VOCAB, 3, LENGTH)
        jumps = torch.full((LENGTH, VOCAB), 0.5)
        models = (_gpt(student, draw, j=jumps, z=idx[:, -1:, None], modes=(mode,)) for mode in (True, False))
        _expect_twins(lambda model: student.model_leak(model, idx, 5), *models, least=0.1)

    def test_every_sequence_counts(self, student, draw):
        """只在一条序列里出现的泄漏，不论是哪一条，都要发现；只有一条序列也行。

        A leak that shows in one sequence only is found, whichever it is; a batch of one works too.
        """
        B = 3
        idx = draw.tokens(VOCAB, B, LENGTH)
        idx[:, 0] = torch.arange(B)  # the first token, always in the past, opens the gate
        mixing = torch.full((LENGTH, LENGTH), 0.1)
        for which in (0, B - 1):
            gate = torch.zeros(VOCAB, 1)
            gate[which] = 1.0
            models = _gpt(student, draw, r=mixing.tril(), gate=gate), _gpt(student, draw, r=mixing, gate=gate)
            _expect_twins(lambda model: student.model_leak(model, idx, 4), *models, least=1e-3)
        models = _gpt(student, draw, r=mixing.tril()), _gpt(student, draw, r=mixing)
        _expect_twins(lambda model: student.model_leak(model, idx[:1], 4), *models, least=1e-3)

    def test_nothing_else_changes(self, student, draw):
        """检查之后，参数和 idx 与原来一样。

        Parameters and idx are the same after the check.
        """
        idx = draw.tokens(VOCAB, 4, LENGTH)
        model = _gpt(student, draw, m=_some_masks(None, None, EVERYTHING))
        before = model.state_dict()
        _expect_twins(lambda model: student.model_leak(model, idx, 6), _gpt(student, draw), model, least=0.01)
        after = model.state_dict()
        for name, tensor in before.items():
            expect.equal(after[name], tensor, Text(zh="检查之后的参数", en="the parameters after the check"))
        expect.equal(
            student.model_leak.inputs_after(model, idx, 6)[1], idx, Text(zh="调用之后的 idx", en="idx after the call")
        )
