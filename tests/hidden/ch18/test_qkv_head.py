"""Hidden tests of notebook 2: Q, K, V and one head."""

import math
from itertools import pairwise, permutations, product

import pytest
import torch
import torch.nn.functional as F

from autograder.judge import expect
from autograder.text import Text


def _sdpa(Q, K, V):
    """Causal attention as PyTorch computes it, (..., T, d_v)."""
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


def _future_weights(A):
    """The entries above the diagonal of every (T, T) table."""
    return A[..., torch.ones(A.shape[-2:], dtype=torch.bool).triu(1)]


def _unchanged(after, before):
    names = Text(zh="调用之后的输入", en="the inputs after the call")
    for got, want in zip(after, before, strict=True):
        expect.equal(got, want, names)


def _expect_equal_prefix(got, want, t, fn, inputs):
    """Fail unless rows 0 to t-1 are equal to the last bit; if not, the detector's picture says who saw whom."""
    if not torch.equal(got[:, :t], want[:, :t]):
        expect.causal(fn, inputs, max_T=6)
    expect.equal(got[:, :t], want[:, :t], Text(zh=f"第 {t} 行之前的输出", en=f"the outputs before row {t}"))


def _expect_gradients(got, output, inputs, cotangent):
    """Compare with the gradients of (output(*inputs) * cotangent).sum()."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    want = torch.autograd.grad((output(*leaves) * cotangent).sum(), leaves)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        reached = Text(
            zh=f"第 {i + 1} 个输入收不到梯度：计算在某处断开了。",
            en=f"No gradient reaches input {i + 1}: the computation is cut somewhere.",
        )
        expect.that(g is not None, reached)
        expect.close(g, w, Text(zh=f"对第 {i + 1} 个输入的梯度", en=f"the gradients for input {i + 1}"))


@pytest.mark.exercise("project_qkv")
class TestProjectQkv:
    PARTS = tuple(Text(zh=name, en=f"the values of {name}") for name in "QKV")

    @pytest.mark.weight(2)
    def test_each_projection(self, student, draw):
        """Q、K、V 各由自己的矩阵算出，顺序不乱（C 与 d 不等）。

        Q, K and V each come from their own matrix, in this order (C and d differ).
        """
        B, T, C, d = draw.primes(4)
        X, W = draw(B, T, C), [draw(C, d) for _ in range(3)]
        got = student.project_qkv(X, *W)  # three (B, T, d)
        for part, weight, name in zip(got, W, self.PARTS, strict=True):
            expect.close(part, torch.einsum("btc,cd->btd", X, weight), name)

    @pytest.mark.weight(2)
    def test_square_matrices(self, student, draw):
        """C = d 时形状帮不上忙，数值仍要对。

        With C = d the shapes cannot help; the values must still be right.
        """
        for B, T, C in ((2, 5, 3), (4, 4, 4)):
            X, W = draw(B, T, C), [draw(C, C) for _ in range(3)]
            got = student.project_qkv(X, *W)  # three (B, T, C)
            for part, weight, name in zip(got, W, self.PARTS, strict=True):
                expect.close(part, torch.einsum("btc,cd->btd", X, weight), name)

    def test_small_shapes(self, student, draw):
        """一条序列、一个位置、d = 1，都照样能算。

        One sequence, one position, d = 1: it works for all of them.
        """
        for B, T, C, d in ((1, 1, 5, 3), (1, 6, 2, 1), (5, 1, 1, 2)):
            X, W = draw(B, T, C), [draw(C, d) for _ in range(3)]
            for part, weight in zip(student.project_qkv(X, *W), W, strict=True):
                expect.close(part, (X.unsqueeze(-1) * weight).sum(-2))

    def test_float32(self, student, draw):
        """输入是 float32 时，结果也是 float32。

        float32 in, float32 out.
        """
        X, W = draw(2, 5, 3, dtype=torch.float32), [draw(3, 7, dtype=torch.float32) for _ in range(3)]
        for part, weight in zip(student.project_qkv(X, *W), W, strict=True):
            expect.close(part, torch.einsum("btc,cd->btd", X, weight))

    def test_gradients(self, student, draw):
        """梯度能传回 X 和相应的矩阵。

        Gradients flow back to X and to the matrix in question.
        """
        X, W, cotangent = draw(2, 3, 5), [draw(5, 2) for _ in range(3)], draw(2, 3, 2)
        for i in range(3):
            got = student.project_qkv.gradients(X, *W, cotangent=cotangent, output=i)
            _expect_gradients([got[0], got[1 + i]], lambda x, w: x @ w, [X, W[i]], cotangent)

    def test_inputs_unchanged(self, student, draw):
        """X 和三个矩阵都没有被改动。

        X and the three matrices are left as they were.
        """
        inputs = [draw(2, 3, 5), draw(5, 7), draw(5, 7), draw(5, 7)]
        _unchanged(student.project_qkv.inputs_after(*inputs), inputs)


@pytest.mark.exercise("linear_from_math")
class TestLinearFromMath:
    SIZES = "def fn(layer): return [layer.in_features, layer.out_features]"
    KIND = "def fn(layer): return isinstance(layer, nn.Linear)"

    def test_weight_layout(self, student, draw):
        """weight 的形状是 (d, C)，in_features 是 C，out_features 是 d。

        The weight has shape (d, C), in_features is C and out_features is d.
        """
        sizes, is_linear = student.probe(self.SIZES), student.probe(self.KIND)
        for C, d in ((5, 3), (2, 7), (1, 4)):
            W = draw(C, d)
            layer = student.linear_from_math(W)
            expect.that(
                is_linear(layer),
                Text(zh=f"应返回 nn.Linear，得到 {layer.type}。", en=f"Expected an nn.Linear, got {layer.type}."),
            )
            weight = layer.state_dict().get("weight", torch.empty(0))
            expect.close(weight, W.T, Text(zh="weight", en="the numbers in weight"))
            expect.close(
                sizes(layer), [C, d], Text(zh="in_features 和 out_features", en="in_features and out_features")
            )

    @pytest.mark.weight(2)
    def test_computes_XW(self, student, draw):
        """f(X) 就是 XW，前面多几个轴也一样。

        f(X) is XW, whatever axes come before the last.
        """
        C, d, B, T = draw.primes(4)
        W = draw(C, d)
        layer = student.linear_from_math(W)
        for X in (draw(B, T, C), draw(T, C), draw(2, 1, T, C)):
            expect.close(layer(X), X @ W)

    @pytest.mark.weight(2)
    def test_square_matrix(self, student, draw):
        """方阵 W 不会报错，数值却能看出装反了没有。

        A square W raises no error; the values tell whether it went in the right way round.
        """
        W, X = draw(4, 4), draw(3, 4)
        expect.close(student.linear_from_math(W)(X), X @ W)

    def test_no_bias(self, student, draw):
        """没有偏置：唯一的参数是 weight。

        No bias: the weight is the only parameter.
        """
        names = sorted(student.linear_from_math(draw(3, 5)).parameters())
        expect.that(
            names == ["weight"],
            Text(zh=f"参数应只有 weight，得到 {names}。", en=f"Expected one parameter, weight; got {names}."),
        )

    def test_dtype_follows_W(self, student, draw):
        """W 是 float32，这一层就是 float32；W 是 float64，就是 float64。

        A float32 W makes a float32 layer, a float64 W a float64 layer.
        """
        for dtype in (torch.float32, torch.float64):
            W, X = draw(3, 5, dtype=dtype), draw(4, 3, dtype=dtype)
            expect.close(student.linear_from_math(W)(X), X @ W)

    def test_can_be_trained(self, student, draw):
        """得到的是可训练的层：weight 收得到梯度。

        The layer can be trained: a gradient reaches its weight.
        """
        W, X, cotangent = draw(3, 5), draw(4, 3), draw(4, 5)
        found = student.linear_from_math(W).gradients(X, cotangent=cotangent)
        gradient = found.parameters.get("weight")
        expect.that(gradient is not None, Text(zh="weight 收不到梯度。", en="No gradient reaches the weight."))
        expect.close(gradient, cotangent.T @ X, Text(zh="weight 的梯度", en="the gradients of weight"))

    def test_two_layers_are_independent(self, student, draw):
        """造第二层不会改动第一层，也不会改动 W。

        Making a second layer changes neither the first one nor W.
        """
        W, other, X = draw(4, 4), draw(4, 4), draw(3, 4)
        first, second = student.linear_from_math(W), student.linear_from_math(other)
        expect.close(first(X), X @ W)
        expect.close(second(X), X @ other)
        _unchanged(student.linear_from_math.inputs_after(W), [W])


@pytest.mark.exercise("scaled_scores")
class TestScaledScores:
    def test_one_entry(self, student, draw):
        """任取一个分数，与手算的点积除以 √d 相同。

        Any single score equals the dot product worked out by hand, divided by √d.
        """
        B, T, d = draw.primes(3)
        Q, K = draw(B, T, d), draw(B, T, d)
        S = student.scaled_scores(Q, K)  # (B, T, T)
        for _ in range(4):
            b, t, j = draw.integer(0, B - 1), draw.integer(0, T - 1), draw.integer(0, T - 1)
            by_hand = sum(float(Q[b, t, i]) * float(K[b, j, i]) for i in range(d)) / math.sqrt(d)
            expect.close(float(S[b, t, j]), by_hand)

    @pytest.mark.weight(2)
    def test_every_entry(self, student, draw):
        """三维输入的全部分数都对。

        All scores of a 3-D input are right.
        """
        for B, T, d in (draw.primes(3), (4, 4, 4), (1, 1, 5), (3, 11, 1)):
            Q, K = draw(B, T, d), draw(B, T, d)
            expect.close(student.scaled_scores(Q, K), torch.einsum("btd,bsd->bts", Q, K) / d**0.5)

    @pytest.mark.weight(2)
    def test_other_numbers_of_axes(self, student, draw):
        """没有 batch 轴、多一个头轴、再多一个轴，都照样能算。

        Without a batch axis, with a head axis, with one more: it works for all of them.
        """
        for leading in ((), (3, 5), (2, 3, 3), (5, 5)):
            T, d = (7, 2) if leading != (5, 5) else (5, 5)
            Q, K = draw(*leading, T, d), draw(*leading, T, d)
            expect.close(student.scaled_scores(Q, K), torch.einsum("...td,...sd->...ts", Q, K) / d**0.5)

    @pytest.mark.weight(2)
    def test_more_keys_than_queries(self, student, draw):
        """query 和 key 的个数不同时，行是 query，列是 key。

        When there are more keys than queries, or fewer, rows are queries and columns are keys.
        """
        for T_q, T_k in ((3, 7), (5, 2), (1, 4)):
            Q, K = draw(2, T_q, 5), draw(2, T_k, 5)
            expect.close(student.scaled_scores(Q, K), torch.einsum("btd,bsd->bts", Q, K) / 5**0.5)

    def test_float32(self, student, draw):
        """输入是 float32 时，结果也是 float32。

        float32 in, float32 out.
        """
        Q, K = draw(2, 5, 3, dtype=torch.float32), draw(2, 5, 3, dtype=torch.float32)
        expect.close(student.scaled_scores(Q, K), torch.einsum("btd,bsd->bts", Q, K) / 3**0.5)

    def test_gradients(self, student, draw):
        """梯度能传回 Q 和 K。

        Gradients flow back to Q and K.
        """
        Q, K, cotangent = draw(2, 3, 5), draw(2, 4, 5), draw(2, 3, 4)
        got = student.scaled_scores.gradients(Q, K, cotangent=cotangent)
        _expect_gradients(got, lambda q, k: torch.einsum("btd,bsd->bts", q, k) / 5**0.5, [Q, K], cotangent)

    def test_inputs_unchanged(self, student, draw):
        """Q 和 K 没有被改动。

        Q and K are left as they were.
        """
        Q, K = draw(2, 3, 5), draw(2, 3, 5)
        _unchanged(student.scaled_scores.inputs_after(Q, K), [Q, K])


@pytest.mark.exercise("causal_attention")
class TestCausalAttention:
    @pytest.mark.weight(2)
    def test_output_agrees_with_sdpa(self, student, draw):
        """Y 与 scaled_dot_product_attention(is_causal=True) 相同，value 的宽度可以与 d 不同。

        Y equals scaled_dot_product_attention(is_causal=True); values may be wider or narrower than d.
        """
        B, T, d, d_v = draw.primes(4)
        for shape in ((B, T, d, d_v), (4, 4, 4, 4), (2, 19, 3, 5)):
            (B, T, d, d_v) = shape
            Q, K, V = draw(B, T, d), draw(B, T, d), draw(B, T, d_v)
            Y, _ = student.causal_attention(Q, K, V)
            expect.close(Y, _sdpa(Q, K, V), Text(zh="Y", en="the values of Y"))

    @pytest.mark.weight(2)
    def test_weights(self, student, draw):
        """A 的每行和为 1，未来的权重恰好是 0，数值与公式相同。

        Every row of A adds up to 1, the future weighs exactly 0, and the values are those of the formula.
        """
        B, T, d, d_v = draw.primes(4)
        Q, K, V = draw(B, T, d), draw(B, T, d), draw(B, T, d_v)
        _, A = student.causal_attention(Q, K, V)  # (B, T, T)
        ones = torch.ones(B, T, dtype=A.dtype)
        expect.close(A.sum(-1), ones, Text(zh="A 的行和", en="the row sums of A"))
        expect.zero(_future_weights(A), Text(zh="A 右上角（未来）的权重", en="the upper right of A (the future)"))
        expect.close(A, _sdpa(Q, K, torch.eye(T, dtype=A.dtype).expand(B, T, T)), Text(zh="A", en="the values of A"))

    @pytest.mark.weight(2)
    def test_prefix_ignores_the_future(self, student, draw):
        """改动 t 之后的 Q、K、V，t 之前的输出一位也不变；第 0 行就是 V 的第 0 行。

        Changing Q, K and V from t on leaves the outputs before t equal to the last bit; row 0 is row 0 of V.
        """
        T = 6
        Q, K, V = draw(2, T, 5), draw(2, T, 5), draw(2, T, 3)

        def inputs(B, T, rng):
            return {name: torch.randn(B, T, 4, generator=rng, dtype=torch.float64) for name in "QKV"}

        Y, A = student.causal_attention(Q, K, V)
        for t in range(1, T):
            changed = [torch.cat([x[:, :t], draw(2, T - t, x.shape[-1], scale=3.0)], dim=1) for x in (Q, K, V)]
            Y_changed, A_changed = student.causal_attention(*changed)
            _expect_equal_prefix(Y_changed, Y, t, lambda Q, K, V: student.causal_attention(Q, K, V)[0], inputs)
            expect.equal(A_changed[:, :t], A[:, :t], Text(zh=f"第 {t} 行之前的权重", en=f"the weights before row {t}"))
        expect.close(Y[:, 0], V[:, 0], Text(zh="Y 的第 0 行", en="the numbers in row 0 of Y"))

    def test_head_axis(self, student, draw):
        """多一个头轴时，结果仍然对。

        The results stay right with a head axis added.
        """
        for leading in ((2, 3), (5, 5)):
            Q, K, V = draw(*leading, 5, 3), draw(*leading, 5, 3), draw(*leading, 5, 2)
            Y, A = student.causal_attention(Q, K, V)
            expect.close(Y, _sdpa(Q, K, V), Text(zh="Y", en="the values of Y"))
            expect.close(A @ V, Y, Text(zh="A 与 V 的乘积", en="the products of A and V"))

    def test_one_position_and_one_sequence(self, student, draw):
        """T = 1 时输出就是 V，权重就是 1；长度变来变去也不受影响。

        With T = 1 the output is V and the weight is 1; calls of other lengths in between change nothing.
        """
        for B, T in ((3, 1), (1, 9), (1, 1), (2, 4)):
            Q, K, V = draw(B, T, 4), draw(B, T, 4), draw(B, T, 4)
            Y, A = student.causal_attention(Q, K, V)
            expect.close(Y, _sdpa(Q, K, V), Text(zh="Y", en="the values of Y"))
            expect.close(A @ V, Y, Text(zh="A 与 V 的乘积", en="the products of A and V"))

    def test_constant_added_to_values(self, student, draw):
        """V 整体加上向量 c，Y 也恰好加上 c。

        Adding a vector c to every row of V adds c to every row of Y.
        """
        Q, K, V, c = draw(2, 5, 3), draw(2, 5, 3), draw(2, 5, 7), draw(7, scale=5.0)
        Y, A = student.causal_attention(Q, K, V)
        Y_shifted, A_shifted = student.causal_attention(Q, K, V + c)
        expect.close(Y_shifted, Y + c, Text(zh="V + c 的输出", en="the outputs for V + c"))
        expect.equal(A_shifted, A, Text(zh="V 变化后的权重", en="the weights after V changed"))

    def test_scores_of_zero(self, student, draw):
        """分数恰好为 0 的位置仍然可见：全零的 query 给出过去的平均。

        A score of exactly 0 is still visible: a query of zeros gives the average of the past.
        """
        T = 6
        Q, K, V = draw(2, T, 4), draw(2, T, 4), draw(2, T, 3)
        Q[0] = 0.0
        K[1, 2] = 0.0
        Y, _ = student.causal_attention(Q, K, V)
        average = V[0].cumsum(0) / torch.arange(1.0, T + 1, dtype=V.dtype)[:, None]  # (T, 3)
        expect.close(Y[0], average, Text(zh="全零 query 的输出", en="the outputs for a query of zeros"))
        expect.close(Y, _sdpa(Q, K, V), Text(zh="Y", en="the values of Y"))

    def test_large_scores(self, student, draw):
        """分数到 ±1000 左右时仍是有限的数，而且正确。

        With scores around ±1000 the results stay finite and right.
        """
        T = 6
        Q = torch.tensor([2.0, -2.0, 2.0, -2.0, 2.0, 2.0]).double()[None, :, None].expand(2, T, 4)
        K = draw.uniform(
            2, T, 4, low=-250.0, high=250.0
        ).round()  # scores are whole numbers: no rounding before softmax
        K[0, 0], K[0, 1], K[1, 0] = 250.0, -250.0, -250.0  # rows that see 1000, rows that see -1000
        V = draw(2, T, 3)
        Y, A = student.causal_attention(Q.clone(), K, V)
        expect.close(Y, _sdpa(Q, K, V), Text(zh="Y", en="the values of Y"))
        expect.zero(_future_weights(A), Text(zh="A 右上角（未来）的权重", en="the upper right of A (the future)"))

    def test_float32(self, student, draw):
        """输入是 float32 时，Y 和 A 也是 float32。

        float32 in, float32 out, for Y and for A.
        """
        Q, K, V = (draw(2, 5, n, dtype=torch.float32) for n in (3, 3, 4))
        Y, A = student.causal_attention(Q, K, V)
        expect.close(Y, _sdpa(Q, K, V), Text(zh="Y", en="the values of Y"))
        expect.close(A.sum(-1), torch.ones(2, 5), Text(zh="A 的行和", en="the row sums of A"))

    def test_gradients(self, student, draw):
        """对 Q、K、V 的梯度都正确。

        The gradients for Q, K and V are right.
        """
        Q, K, V, cotangent = draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 5), draw(2, 4, 5)
        got = student.causal_attention.gradients(Q, K, V, cotangent=cotangent, output=0)
        _expect_gradients(got, _sdpa, [Q, K, V], cotangent)

    def test_inputs_unchanged(self, student, draw):
        """Q、K、V 没有被改动。

        Q, K and V are left as they were.
        """
        inputs = [draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 3)]
        _unchanged(student.causal_attention.inputs_after(*inputs), inputs)


class _Weights:
    """New projection weights for a head, in whatever form the student chose to keep them.

    Parameters may be three Linear layers, three matrices, one fused Linear or anything in between. ``readings`` are the
    (W_Q, W_K, W_V), each (C, d), that the loaded numbers can stand for. Names decide where they tell.
    """

    def __init__(self, head, C, d, draw, dtype):
        state = head.state_dict()
        blocks = {name: _blocks(state[name], C, d) for name in head.parameters() if name in state}
        self.readings = list(_readings({name: ways for name, ways in blocks.items() if ways}))
        expect.that(
            bool(self.readings),
            Text(
                zh="在参数里没有找到三个 (C, d) 的投影矩阵。",
                en="The parameters do not contain three projection matrices of C × d numbers.",
            ),
        )
        for matrix in self.readings[0]:
            matrix.copy_(draw(C, d, dtype=dtype, scale=C**-0.5))
        for name, ways in blocks.items():
            if not ways and state[name].ndim == 1:
                state[name].zero_()  # a bias: test_parameters speaks about it
        head.load_state_dict(state)

    def expect_some(self, got, compute, what=None):
        """Fail unless ``got`` is close to ``compute(W_Q, W_K, W_V)`` for one of the readings, which is returned."""
        closest = min(self.readings, key=lambda reading: float((got - compute(*reading)).abs().max()))
        expect.close(got, compute(*closest), what)
        return closest


def _blocks(parameter, C, d):
    """The ways to see a parameter as a list of (C, d) matrices, all of them views; empty when there is none."""
    p = parameter.squeeze()
    if p.ndim == 3 and p.shape[0] == 3 and {*p.shape[1:]} == {C, d}:  # (3, C, d) or (3, d, C)
        return [[m if m.shape == (C, d) else m.T for m in p]]
    if p.ndim != 2 or C not in p.shape:
        return []
    p = p if p.shape[0] == C else p.T  # (C, n·d)
    n = p.shape[1] // d
    if n not in (1, 2, 3) or p.shape[1] != n * d:
        return []
    return [list(p.split(d, dim=1)), [p[:, i::n] for i in range(n)]]


def _readings(parameters):
    """Every (W_Q, W_K, W_V) that named parameters, each with its ways to see it, can stand for."""
    roles = ["".join(letter for letter in "qkv" if letter in name.lower()) for name in parameters]
    if sorted(roles) == ["k", "q", "v"]:
        ways = dict(zip(roles, parameters.values(), strict=True))
        return [[block for role in "qkv" for block in ways[role][0]]]
    choices = ([block for way in choice for block in way] for choice in product(*parameters.values()))
    return [reading for blocks in choices if len(blocks) == 3 for reading in permutations(blocks)]


def _head(X):
    """What a head should compute from X, as a function of its three matrices."""
    return lambda W_Q, W_K, W_V: _sdpa(X @ W_Q, X @ W_K, X @ W_V)


@pytest.mark.exercise("Head")
class TestHead:
    C, D, BLOCK = 7, 5, 11

    def build(self, student, draw, dropout=None, dtype=torch.float64, sizes=None):
        sizes = sizes or (self.C, self.D, self.BLOCK)
        head = student.Head(*sizes) if dropout is None else student.Head(*sizes, dropout)
        if dtype != torch.float32:
            head.to(dtype)
        return head, _Weights(head, *sizes[:2], draw, dtype)

    @pytest.mark.weight(2)
    def test_parameters(self, student):
        """参数恰好有 3·C·d 个数：三个投影，没有偏置，遮罩不在其中。

        There are exactly 3·C·d numbers to train: three projections, no bias, and no mask among them.
        """
        for C, d, block in ((7, 5, 11), (3, 13, 2), (4, 4, 4)):
            count = sum(p.numel() for p in student.Head(C, d, block).parameters().values())
            expect.that(
                count == 3 * C * d,
                Text(
                    zh=f"C={C}、d={d} 时应有 {3 * C * d} 个可训练的数，得到 {count} 个。",
                    en=f"With C={C} and d={d} there should be {3 * C * d} numbers to train, there are {count}.",
                ),
            )

    @pytest.mark.weight(2)
    def test_mask_is_a_buffer(self, student):
        """遮罩是名为 tril 的 buffer，形状为 (block_size, block_size)，下三角可见。

        The mask is a buffer called tril of shape (block_size, block_size) whose lower triangle is visible.
        """
        for block in (11, 4):
            past = torch.ones(block, block, dtype=torch.bool).tril()
            m = student.Head(7, 5, block).buffers().get("tril", torch.empty(0))
            found = m.shape == past.shape and m[past].unique().numel() == 1 and not bool((m[~past] == m[0, 0]).any())
            expect.that(
                found,
                Text(
                    zh=f"没有找到名为 tril、形状为 ({block}, {block}) 的下三角 buffer。",
                    en=f"There is no lower-triangular buffer called tril of shape ({block}, {block}).",
                ),
            )

    @pytest.mark.weight(2)
    def test_agrees_with_sdpa(self, student, draw):
        """装入同样的权重，结果与 scaled_dot_product_attention 相同（d 与 C 不等）。

        With the same weights in it, the head equals scaled_dot_product_attention (d differs from C).
        """
        head, weights = self.build(student, draw)
        for B in (3, 1, self.BLOCK):
            X = draw(B, self.BLOCK, self.C, scale=2.0)
            weights.expect_some(head(X), _head(X))

    @pytest.mark.weight(2)
    def test_shorter_inputs(self, student, draw):
        """T 从 1 到 block_size 都能用。

        Every T from 1 to block_size works.
        """
        head, weights = self.build(student, draw)
        for T in (4, 1, 10, 2, 11):
            X = draw(2, T, self.C, scale=2.0)
            weights.expect_some(head(X), _head(X), Text(zh=f"T={T} 时的输出", en=f"the outputs for T={T}"))

    @pytest.mark.weight(2)
    def test_prefix_ignores_the_future(self, student, draw):
        """改动 t 之后的输入，t 之前的输出一位也不变。

        Changing the input from t on leaves the outputs before t equal to the last bit.
        """
        head, _ = self.build(student, draw)
        T = 6
        X = draw(2, T, self.C)

        def inputs(B, T, rng):
            return {"X": torch.randn(B, T, self.C, generator=rng, dtype=torch.float64)}

        Y = head(X)
        for t in range(1, T):
            changed = torch.cat([X[:, :t], draw(2, T - t, self.C, scale=3.0)], dim=1)
            _expect_equal_prefix(head(changed), Y, t, lambda X: head(X), inputs)

    @pytest.mark.weight(2)
    def test_eval_drops_nothing(self, student, draw):
        """eval 模式下什么也不丢：两次结果相同，也与公式相同。

        In eval mode nothing is dropped: two calls agree, and both agree with the formula.
        """
        head, weights = self.build(student, draw, dropout=0.5)
        X = draw(4, 8, self.C)
        head.eval()
        Y = head(X)
        weights.expect_some(Y, _head(X))
        expect.equal(head(X), Y, Text(zh="第二次调用的结果", en="the results of a second call"))

    @pytest.mark.weight(2)
    def test_training_drops_weights(self, student, draw):
        """训练模式下按概率 dropout 丢掉权重：只有一个位置时，整个来源要么丢掉，要么放大 1/(1-p)。

        In train mode weights are dropped with probability dropout: with a single position, its one source is either
        dropped as a whole or enlarged by 1/(1-p).
        """
        p, B = 0.25, 400
        head, weights = self.build(student, draw, dropout=p)
        head.eval()
        head.train()
        X = draw(4, 6, self.C)
        expect.differs(head(X), head(X), what=Text(zh="训练模式下的两次结果", en="two results in train mode"))
        X = draw(B, 1, self.C)
        Y = head(X)  # (B, 1, d)
        dropped = (Y == 0).all(-1)  # (B, 1)
        kept = (~dropped).unsqueeze(-1)  # (B, 1, 1)
        weights.expect_some(Y, lambda W_Q, W_K, W_V: kept * (X @ W_V) / (1 - p))
        share = float(dropped.double().mean())
        expect.that(
            0.1 < share < 0.4,  # seven standard deviations
            Text(
                zh=f"dropout={p} 时应丢掉约四分之一的权重，丢掉了 {share:.0%}。",
                en=f"With dropout={p} about a quarter of the weights should be dropped; {share:.0%} were.",
            ),
        )

    def test_each_weight_is_dropped_on_its_own(self, student, draw):
        """每个权重各自丢或留：同一行的、同一列的、不同序列里的，不会总是一起丢掉。

        Each weight is dropped on its own: those of one row, of one column or of two sequences do not always go together.
        """
        B, T, p = 4, self.BLOCK, 0.5
        head, _ = self.build(student, draw, dropout=p)
        X = draw(1, 1, self.C).expand(B, T, self.C).contiguous()  # all positions alike: row t weighs each 1/(t+1)
        head.eval()
        whole = head(X)
        head.train()
        share = (head(X) * whole).sum(-1) / (whole * whole).sum(-1)  # (B, T): the row sums after dropout
        sizes = torch.arange(1.0, T + 1, dtype=share.dtype)  # (T,)
        kept = share * (1 - p) * sizes  # (B, T): how many weights of the row stayed
        expect.close(
            kept, kept.round(), Text(zh="各行留下的权重个数", en="the numbers of weights that stayed in a row")
        )
        kept = kept.round()
        steps = kept.diff(dim=1)  # of whole columns, each row keeps what the one before kept, or one more
        alone = ((kept > 0) & (kept < sizes)).any() and ((steps < 0) | (steps > 1)).any() and (kept != kept[0]).any()
        expect.that(bool(alone), Text(zh="有些权重总是一起丢掉。", en="Some weights are always dropped together."))

    def test_gradients(self, student, draw):
        """梯度能传到输入和每一个参数，而且对输入的梯度正确。

        Gradients reach the input and every parameter, and those for the input are right.
        """
        head, weights = self.build(student, draw)
        X, cotangent = draw(2, 6, self.C), draw(2, 6, self.D)
        reading = weights.expect_some(head(X), _head(X))
        found = head.gradients(X, cotangent=cotangent)
        for name, gradient in found.parameters.items():
            expect.that(
                gradient is not None and bool((gradient != 0).any()),
                Text(zh=f"参数 {name} 收不到梯度。", en=f"No gradient reaches the parameter {name}."),
            )
        _expect_gradients(found.inputs, lambda x: _head(x)(*reading), [X], cotangent)

    def test_float32(self, student, draw):
        """不转换 dtype 时，模块是 float32，结果也是 float32。

        Left unconverted, the module is float32, and so is its result.
        """
        head, weights = self.build(student, draw, dtype=torch.float32)
        X = draw(2, 9, self.C, dtype=torch.float32)
        weights.expect_some(head(X), _head(X))

    def test_two_heads_are_independent(self, student, draw):
        """再造一个大小不同的头，前一个头不受影响。

        Making another head of another size leaves the first as it was.
        """
        first, weights = self.build(student, draw)
        X, Z = draw(2, 8, self.C), draw(3, 3, 2)
        second, others = self.build(student, draw, sizes=(2, 3, 4))
        weights.expect_some(first(X), _head(X))
        others.expect_some(second(Z), _head(Z))

    def test_inputs_unchanged(self, student, draw):
        """输入没有被改动。

        The input is left as it was.
        """
        head, _ = self.build(student, draw)
        X = draw(2, 5, self.C)
        _unchanged(head.inputs_after(X), [X])


@pytest.mark.exercise("score_stats")
class TestScoreStats:
    # With n = 40000 a sample variance strays by 0.9 % at d = 4 and by less above: 5 % are five standard deviations.
    N = 40000

    def check(self, got, want, what):
        expect.that(
            abs(got - want) <= 0.05 * want,
            Text(
                zh=f"{what.zh}应在 {want:g} 的 5% 以内，得到 {got:.4g}。",
                en=f"{what.en} should be within 5 % of {want:g}, it is {got:.4g}.",
            ),
        )

    @pytest.mark.weight(2)
    def test_raw_variance_is_d(self, student, draw):
        """原始点积的方差约等于 d。

        The variance of the raw dot products is about d.
        """
        for d in (4, 9):
            raw, _ = student.score_stats(d, self.N, draw.integer(0, 10**6))
            self.check(raw, float(d), Text(zh=f"d={d} 时原始分数的方差", en=f"the variance of raw scores for d={d}"))

    @pytest.mark.weight(2)
    def test_scaled_variance_is_one(self, student, draw):
        """除以 √d 以后，方差约等于 1，不再随 d 增长。

        After dividing by √d the variance is about 1 and no longer grows with d.
        """
        for d in (5, 7):
            _, scaled = student.score_stats(d, self.N, draw.integer(0, 10**6))
            self.check(scaled, 1.0, Text(zh=f"d={d} 时缩放后的方差", en=f"the scaled variance for d={d}"))

    def test_seed_repeats(self, student, draw):
        """同一个 seed 两次结果相同，不同的 seed 结果不同。

        The same seed gives the same result twice; another seed gives another.
        """
        seed = draw.integer(0, 10**6)
        first = student.score_stats(3, 50, seed)
        expect.close(student.score_stats(3, 50, seed), first, Text(zh="同一个 seed 的结果", en="results of one seed"))
        other = student.score_stats(3, 50, seed + 1)
        expect.that(other != first, Text(zh="换了 seed，结果没有变。", en="Another seed gave the same result."))

    def test_one_sample_two_scales(self, student, draw):
        """两个方差来自同一批点积：后一个恰好是前一个除以 d。

        Both variances are those of the same dot products: the second is the first divided by d.
        """
        for d, n in ((7, 50), (3, 2), (5, 1000)):
            raw, scaled = student.score_stats(d, n, draw.integer(0, 10**6))
            expect.that(
                abs(scaled * d - raw) <= 1e-3 * raw + 1e-6,
                Text(
                    zh=f"除以 √{d} 之后的方差应是 {raw:.4g}/{d}，得到 {scaled:.4g}。",
                    en=f"After dividing by √{d} the variance should be {raw:.4g}/{d}, it is {scaled:.4g}.",
                ),
            )

    def test_one_dot_product_for_each_pair(self, student, draw):
        """每对只有一个点积：只抽两对时，方差有时会小得多，d 再大也一样。

        Each pair has one dot product: with two pairs only, the variance is far too small now and then, however large d is.
        """
        d = 64
        raw = [student.score_stats(d, 2, draw.integer(0, 10**6))[0] for _ in range(60)]
        expect.that(  # of two normal numbers one time in four; over all products never
            min(raw) < 0.1 * d,
            Text(
                zh="n=2 时的结果准得不可能：每对应当只有一个点积。",
                en="With n=2 the results are too good: there should be one dot product for each pair.",
            ),
        )

    def test_sample_size_counts(self, student, draw):
        """n 就是样本数：n 很小时，方差会明显偏离 d。

        n is the number of samples: with a tiny n the variance strays visibly from d.
        """
        stats = [student.score_stats(4, 3, draw.integer(0, 10**6)) for _ in range(8)]
        expect.that(
            any(abs(raw - 4) > 0.4 for raw, _ in stats),
            Text(zh="n=3 时的结果准得不可能：n 没有用上。", en="With n=3 the results are too good: n is not used."),
        )
        expect.that(
            any(abs(scaled**2 - raw / 4) > 1e-3 for raw, scaled in stats),  # about 1 for many samples, whichever it is
            Text(zh="第二个数是标准差，不是方差。", en="The second number is a standard deviation, not a variance."),
        )


@pytest.mark.exercise("multi_head_scores")
class TestMultiHeadScores:
    @staticmethod
    def one_head(X, Wq, Wk, H, h):
        """The scores of head h from its own columns, (B, T, T)."""
        size = X.shape[-1] // H
        own = slice(h * size, (h + 1) * size)
        return torch.einsum("btd,bsd->bts", X @ Wq[:, own], X @ Wk[:, own]) / size**0.5

    def expect_heads(self, student, draw, B, T, H, size, dtype=torch.float64):
        C = H * size
        X, Wq, Wk = draw(B, T, C, dtype=dtype), draw(C, C, dtype=dtype), draw(C, C, dtype=dtype)
        S = student.multi_head_scores(X, Wq, Wk, H)  # (B, H, T, T)
        for h in range(H):
            expect.close(
                S[:, h], self.one_head(X, Wq, Wk, H, h), Text(zh=f"第 {h} 个头的分数", en=f"the scores of head {h}")
            )

    @pytest.mark.weight(3)
    def test_every_head(self, student, draw):
        """第 h 个头只用第 h 段列，除以每个头自己的 √(C/H)。

        Head h uses the h-th block of columns only, and divides by its own √(C/H).
        """
        B, T, H, size = draw.primes(4)
        self.expect_heads(student, draw, B, T, min(H, 7), min(size, 7))

    @pytest.mark.weight(2)
    def test_sizes_that_hide_mistakes(self, student, draw):
        """T = H、B = H、头宽等于 H 时，搅乱了轴也不会报错，数值却要对。

        With T = H, B = H or a head as wide as H, mixed-up axes raise no error; the values must be right.
        """
        for B, T, H, size in ((2, 3, 3, 5), (3, 5, 3, 2), (2, 5, 3, 3), (3, 3, 3, 3)):
            self.expect_heads(student, draw, B, T, H, size)

    def test_one_head(self, student, draw):
        """H = 1 就是普通的单头分数，还是四个轴。

        With H = 1 these are the scores of a single head, still with four axes.
        """
        self.expect_heads(student, draw, 2, 5, 1, 7)

    def test_heads_of_width_one(self, student, draw):
        """H = C 时每个头只有一个特征；T = 1、B = 1 也能算。

        With H = C every head has one feature; T = 1 and B = 1 work too.
        """
        self.expect_heads(student, draw, 2, 3, 5, 1)
        self.expect_heads(student, draw, 1, 1, 2, 3)

    def test_sequences_do_not_mix(self, student, draw):
        """一条序列单独算，与放在 batch 里算结果相同。

        A sequence on its own gives what it gives within the batch.
        """
        X, Wq, Wk = draw(3, 4, 6), draw(6, 6), draw(6, 6)
        S = student.multi_head_scores(X, Wq, Wk, 2)  # (3, 2, 4, 4)
        expect.close(student.multi_head_scores(X[1:2], Wq, Wk, 2), S[1:2])

    def test_float32(self, student, draw):
        """输入是 float32 时，结果也是 float32。

        float32 in, float32 out.
        """
        self.expect_heads(student, draw, 2, 5, 3, 2, dtype=torch.float32)

    def test_gradients(self, student, draw):
        """梯度能传回 X 和两个矩阵。

        Gradients flow back to X and to both matrices.
        """
        X, Wq, Wk, cotangent = draw(2, 3, 6), draw(6, 6), draw(6, 6), draw(2, 2, 3, 3)
        got = student.multi_head_scores.gradients(X, Wq, Wk, 2, cotangent=cotangent)
        _expect_gradients(
            got[:3],
            lambda x, q, k: torch.stack([self.one_head(x, q, k, 2, h) for h in range(2)], dim=1),
            [X, Wq, Wk],
            cotangent,
        )

    def test_inputs_unchanged(self, student, draw):
        """X 和两个矩阵没有被改动。

        X and both matrices are left as they were.
        """
        inputs = [draw(2, 3, 4), draw(4, 4), draw(4, 4)]
        _unchanged(student.multi_head_scores.inputs_after(*inputs, 2)[:3], inputs)


@pytest.mark.exercise("sharpen")
class TestSharpen:
    @staticmethod
    def softmax(z):
        """Softmax from its definition, for scores of moderate size."""
        return z.exp() / z.exp().sum()

    @pytest.mark.weight(2)
    def test_numbers_of_the_lecture(self, student):
        """课程里的五个分数：原样时最大权重约 .2872，乘 8 后约 .8000。

        The five scores of the lecture: the largest weight is about .2872 as they are and .8000 times 8.
        """
        logits = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5], dtype=torch.float64)
        for factor in (1, 8):
            expect.close(student.sharpen(logits, factor), self.softmax(logits * factor))

    @pytest.mark.weight(2)
    def test_any_factor(self, student, draw):
        """任意分数、任意正的倍数（小于 1 也行），结果都对，和为 1。

        Right, and adding up to 1, for any scores and any positive factor, below 1 as well.
        """
        for n, factor in ((7, 0.3), (4, 2), (11, 5.5), (2, 1.0), (5, 64)):
            logits = draw(n, scale=1.0 if factor < 10 else 0.3)
            weights = student.sharpen(logits, factor)
            expect.close(
                weights.sum(), torch.tensor(1.0, dtype=torch.float64), Text(zh="权重之和", en="the added-up weights")
            )
            expect.close(weights, self.softmax(logits * factor))

    def test_larger_factor_is_sharper(self, student, draw):
        """factor 越大，分布的熵越小。

        The larger the factor, the lower the entropy of the distribution.
        """
        logits = draw(6)
        entropies = []
        for factor in (0.25, 0.5, 1, 2, 4):
            p = student.sharpen(logits, factor)
            entropies.append(float(torch.special.entr(p).sum()))
        expect.that(
            all(later < earlier for earlier, later in pairwise(entropies)),
            Text(zh="factor 变大时，熵没有变小。", en="The entropy does not fall as the factor grows."),
        )

    def test_factor_zero_is_uniform(self, student, draw):
        """factor = 0 时人人权重相同。

        With factor = 0 everyone weighs the same.
        """
        for factor in (0, 0.0):
            expect.close(student.sharpen(draw(5), factor), torch.full((5,), 0.2, dtype=torch.float64))

    def test_small_and_equal_scores(self, student, draw):
        """只有一个分数时权重是 1；分数都相同时平分。

        A single score weighs 1; equal scores share equally.
        """
        expect.close(student.sharpen(draw(1), 3), torch.ones(1, dtype=torch.float64))
        expect.close(student.sharpen(torch.full((4,), -2.5).double(), 3), torch.full((4,), 0.25, dtype=torch.float64))

    def test_float32(self, student, draw):
        """输入是 float32 时，结果也是 float32。

        float32 in, float32 out.
        """
        logits = draw(5, dtype=torch.float32)
        expect.close(student.sharpen(logits, 1.5), self.softmax(logits * 1.5))

    def test_inputs_unchanged(self, student, draw):
        """分数没有被改动。

        The scores are left as they were.
        """
        logits = draw(5)
        _unchanged(student.sharpen.inputs_after(logits, 8)[:1], [logits])
