"""Hidden tests of notebook 3: positions, cross-attention and dropout."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.judge import expect
from autograder.judge.conform import conform
from autograder.text import Text

# ---------------------------------------------------------------- permutation_gap

# One source for functions that are equivariant and for ones that are not: the constants decide.
ATTENTION = """
def fn(x):
    h = x + p  # (B, T, C)
    s = (h @ a) @ h.transpose(-2, -1)  # (B, T, T)
    return s.masked_fill(~m, float("-inf")).softmax(-1) @ h + r @ h
"""


def _constants(draw, T, C, **special):
    """An equivariant function: no mask, no positions, no other mixing of positions."""
    return {
        "p": torch.zeros(T, C, dtype=torch.float64),
        "a": draw(C, C, scale=1 / C),
        "m": torch.ones(T, T, dtype=torch.bool),
        "r": torch.zeros(T, T, dtype=torch.float64),
        **special,
    }


def _cycle(draw, T):
    """A permutation that is one cycle through all positions, so for T > 2 it is not its own inverse."""
    order = draw.permutation(T)  # (T,)
    perm = torch.empty_like(order)
    perm[order] = order.roll(-1)
    return perm


def _gap(who, X, perm, constants):
    return who.permutation_gap(who.probe(ATTENTION, **constants), X, perm)


SMALL = Text(
    zh="一个等变函数的差距应在舍入误差之内。", en="The gap of an equivariant function should be rounding only."
)
SEEN = Text(
    zh="这个函数不是等变的，差距应大于 0.1。", en="This function is not equivariant; its gap should exceed 0.1."
)


@pytest.mark.exercise("permutation_gap")
class TestPermutationGap:
    @pytest.mark.weight(2)
    def test_causal_mask_breaks_equivariance(self, student, draw):
        """没有遮罩的注意力是等变的（差距只有舍入误差），加了因果遮罩就不是（差距明显）。

        Attention without a mask is equivariant (a gap of rounding only); with a causal mask it is not (a gap you can see).
        """
        B, T, C = 2, 7, 3
        X, perm = draw(B, T, C), _cycle(draw, T)
        causal = torch.ones(T, T, dtype=torch.bool).tril()
        expect.that(_gap(student, X, perm, _constants(draw, T, C)) < 1e-12, SMALL)
        expect.that(_gap(student, X, perm, _constants(draw, T, C, m=causal)) > 0.1, SEEN)

    def test_positions_break_equivariance(self, student, draw):
        """给每个位置加上自己的向量之后，注意力不再等变。

        Once every position adds a vector of its own, attention is no longer equivariant.
        """
        B, T, C = 3, 5, 2
        X, perm = draw(B, T, C), _cycle(draw, T)
        expect.that(_gap(student, X, perm, _constants(draw, T, C)) < 1e-12, SMALL)
        expect.that(_gap(student, X, perm, _constants(draw, T, C, p=draw(T, C))) > 0.1, SEEN)

    def test_position_axis(self, student, draw):
        """B、T、C 相等时，重排的仍是位置轴。

        With B, T and C equal it is still the position axis that is reordered.
        """
        n = 5
        X, perm = draw(n, n, n), _cycle(draw, n)
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        expect.that(_gap(student, X, perm, _constants(draw, n, n)) < 1e-12, SMALL)
        expect.that(_gap(student, X, perm, _constants(draw, n, n, m=causal)) > 0.1, SEEN)

    @pytest.mark.weight(2)
    def test_largest_absolute_difference(self, student, reference, draw):
        """差距是最大的绝对差：差处处为负或处处为正时也一样，只出在一处时也一样，很小时也一样。

        The gap is the largest absolute difference, also when all are negative or all positive, also when a
        single one is off, and also when it is tiny.
        """
        B, T, C = 2, 7, 3
        X, perm = draw(B, T, C), _cycle(draw, T)
        X[:, 0] = 9.0 + X[:, 0].abs()  # every row reads the first one, and no other is as large
        first = torch.zeros(T, T, dtype=torch.float64)
        first[:, 0] = 1.0
        corner = torch.zeros(T, C, dtype=torch.float64)
        corner[T - 1, C - 1] = 4.0
        tiny = {"p": 1e-8 * corner, "r": torch.eye(T, dtype=torch.float64)}
        for inputs, special in ((X, {"r": first}), (-X, {"r": first}), (X, {"p": corner}), (X, tiny)):
            constants = _constants(draw, T, C, **special)
            expect.close(_gap(student, inputs, perm, constants), _gap(reference, inputs, perm, constants))

    def test_every_sequence_counts(self, student, reference, draw):
        """整个 batch 都要看：第一条序列看不出差距，别的序列看得出。

        The whole batch is looked at: the first sequence shows no gap, another one does.
        """
        B, T, C = 3, 5, 2
        X, perm = draw(B, T, C), _cycle(draw, T)
        X[0] = X[0, 0]  # all positions alike
        constants = _constants(draw, T, C, m=torch.ones(T, T, dtype=torch.bool).tril())
        expect.close(_gap(student, X, perm, constants), _gap(reference, X, perm, constants))
        X = X.flip(0)
        expect.close(_gap(student, X, perm, constants), _gap(reference, X, perm, constants))

    def test_nothing_shuffled(self, student, draw):
        """什么也没有打乱时，差距恰好是 0；打乱了就不是。

        When nothing is shuffled the gap is exactly 0; when something is, it is not.
        """
        T, C = 7, 2
        X = draw(2, T, C)
        constants = _constants(draw, T, C, m=torch.ones(T, T, dtype=torch.bool).tril())
        still = _gap(student, X, torch.arange(T), constants)
        expect.that(still == 0, Text(zh="差距应恰好为 0。", en="The gap should be exactly 0."))
        expect.that(_gap(student, X, _cycle(draw, T), constants) > 0.1, SEEN)

    def test_input_left_unchanged(self, student, draw):
        """调用之后 X 和 perm 与原来一样。

        X and perm are the same after the call.
        """
        T, C = 5, 3
        X, perm = draw(2, T, C), _cycle(draw, T)
        fn = student.probe(ATTENTION, **_constants(draw, T, C, p=draw(T, C)))
        expect.that(student.permutation_gap(fn, X, perm) > 0.1, SEEN)
        _, X_after, perm_after = student.permutation_gap.inputs_after(fn, X, perm)
        expect.equal(X_after, X, Text(zh="调用之后的 X", en="X after the call"))
        expect.equal(perm_after, perm, Text(zh="调用之后的 perm", en="perm after the call"))


# ---------------------------------------------------------------- TokenPosEmbedding

TWO_TABLES = Text(
    zh="应有两张可训练的表，共 V·C + T_max·C 个数，得到 {got} 个。",
    en="There should be two trained tables, V·C + T_max·C numbers in all; there are {got}.",
)


def _laid_out(table, like):
    """A table as a parameter holds it: (n, C), with a leading axis of 1, or (C, n) as in the weight of an nn.Linear."""
    return table.T if like.shape == table.T.shape else table.reshape(like.shape)


def _tables(m, draw, V, C, T_max, dtype=torch.float32):
    """Fill the instance's two tables with numbers of ours and return them: E (V, C) and P (T_max, C)."""
    parameters = m.parameters()
    sizes = {name: p.numel() for name, p in parameters.items()}
    expect.that(
        sorted(sizes.values()) == sorted((V * C, T_max * C)),
        TWO_TABLES.format(got=sum(p.numel() for p in parameters.values())),
    )
    tables = {V * C: draw(V, C, dtype=dtype), T_max * C: draw(T_max, C, dtype=dtype)}
    m.load_state_dict(m.state_dict() | {name: _laid_out(tables[sizes[name]], p) for name, p in parameters.items()})
    return tables[V * C], tables[T_max * C]


@pytest.mark.exercise("TokenPosEmbedding")
class TestTokenPosEmbedding:
    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("V", "T_max"), [(11, 5), (3, 13)])
    def test_sum_of_token_and_position(self, student, draw, V, T_max):
        """第 t 个位置的输出是字符的向量加上第 t 行位置向量，字符比位置多或少都一样。

        The output at position t is the token's vector plus row t of the positions, with more tokens than positions or fewer.
        """
        B, T, C = 7, 4, 2
        m = student.TokenPosEmbedding(V, C, T_max)
        E, P = _tables(m, draw, V, C, T_max)
        idx = draw.tokens(V, B, T)  # (B, T)
        expect.close(m(idx), E[idx] + P[:T])

    def test_keyword_arguments_and_count(self, student, draw):
        """参数恰好 V·C + T_max·C 个，分成两张表。

        There are exactly V·C + T_max·C parameters, in two tables.
        """
        V, C, T_max = 7, 5, 3
        m = student.TokenPosEmbedding(V=V, C=C, T_max=T_max)
        E, P = _tables(m, draw, V, C, T_max)
        idx = draw.tokens(V, 2, T_max)
        expect.close(m(idx), E[idx] + P)

    def test_same_token_at_two_positions(self, student, draw):
        """同一个字符站在不同的位置，向量不同；同一个位置在每条序列里加的向量相同。

        One token gets different vectors at different positions; one position adds the same vector in every sequence.
        """
        V, C, T_max, B, T = 5, 3, 11, 2, 7
        m = student.TokenPosEmbedding(V, C, T_max)
        E, P = _tables(m, draw, V, C, T_max)
        idx = torch.full((B, T), draw.integer(0, V - 1))
        got = m(idx)  # (B, T, C)
        expect.equal(got[0], got[1], Text(zh="两条相同序列的结果", en="the results for two equal sequences"))
        expect.close(got[0] - E[idx[0]], P[:T], Text(zh="各个位置加上的向量", en="the vectors that the positions add"))

    @pytest.mark.weight(2)
    def test_length_limit(self, student, draw):
        """恰好 T_max 个字符放得下，再多就抛出 ValueError。

        Exactly T_max tokens fit; more of them raise a ValueError.
        """
        V, C, T_max = 13, 2, 5
        m = student.TokenPosEmbedding(V, C, T_max)
        E, P = _tables(m, draw, V, C, T_max)
        full = draw.tokens(V, 3, T_max)
        expect.close(m(full), E[full] + P)
        for length in (T_max + 1, 3 * T_max):
            raised = m.error(draw.tokens(V, 2, length))
            said = Text(
                zh=f"T > T_max 时应抛出 ValueError，得到：{raised}。",
                en=f"T > T_max should raise ValueError, got: {raised}.",
            )
            expect.that(raised == "ValueError", said)

    def test_short_and_single(self, student, draw):
        """一条序列、一个字符也行；B 大于 T_max 也行；转成 float64 之后结果是 float64。

        A single sequence and a single token work, so does B above T_max; converted to float64 it gives float64.
        """
        V, C, T_max = 5, 7, 3
        m = student.TokenPosEmbedding(V, C, T_max)
        m.to(torch.float64)
        E, P = _tables(m, draw, V, C, T_max, torch.float64)
        for shape in ((1, 1), (11, 1), (11, 2)):
            idx = draw.tokens(V, *shape)
            expect.close(m(idx), E[idx] + P[: shape[1]])

    def test_gradients_reach_both_tables(self, student, draw):
        """两张表都收到正确的梯度：字符表按出现的次数累加，位置表对整个 batch 累加。

        Both tables get the right gradients: a token's row adds up its occurrences, a position's row adds up the batch.
        """
        V, C, T_max, B, T = 5, 2, 7, 3, 4
        m = student.TokenPosEmbedding(V, C, T_max)
        _tables(m, draw, V, C, T_max)
        idx, g = draw.tokens(V, B, T), draw(B, T, C, dtype=torch.float32)
        want = {
            V * C: torch.zeros(V, C).index_add(0, idx.flatten(), g.flatten(0, 1)),  # (V, C)
            T_max * C: F.pad(g.sum(0), (0, 0, 0, T_max - T)),  # (T_max, C)
        }
        for got in m.gradients(idx, cotangent=g).parameters.values():
            reached = Text(zh="有一张表收不到梯度。", en="One of the tables gets no gradient.")
            expect.that(got is not None, reached)
            expect.close(got, _laid_out(want[got.numel()], got), Text(zh="表的梯度", en="the gradient of a table"))

    def test_modes_and_instances(self, student, draw):
        """训练态与评估态结果相同，两个实例互不影响。

        Training and evaluation mode agree, and two instances do not affect each other.
        """
        V, C, T_max, T = 7, 3, 5, 4
        one, other = student.TokenPosEmbedding(V, C, T_max), student.TokenPosEmbedding(V, C, T_max)
        E, P = _tables(one, draw, V, C, T_max)
        E2, P2 = _tables(other, draw, V, C, T_max)
        idx = draw.tokens(V, 2, T)
        for train in (True, False):
            one.train(train)
            expect.close(one(idx), E[idx] + P[:T])
        expect.close(other(idx), E2[idx] + P2[:T])
        (after,) = one.inputs_after(idx)
        expect.equal(after, idx, Text(zh="调用之后的 idx", en="idx after the call"))


# ---------------------------------------------------------------- crop_context


@pytest.mark.exercise("crop_context")
class TestCropContext:
    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("T", "T_max"), [(11, 3), (7, 5), (13, 12)])
    def test_latest_tokens_stay(self, student, draw, T, T_max):
        """序列比 T_max 长时，留下最近的 T_max 个，次序不变。

        Of a sequence longer than T_max the latest T_max tokens stay, in their order.
        """
        idx = draw.tokens(1000, 2, T)
        expect.equal(student.crop_context(idx, T_max), idx[:, T - T_max :])

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("T", "T_max"), [(3, 4), (3, 5), (5, 7), (1, 2), (4, 100)])
    def test_short_sequences_come_back_whole(self, student, draw, T, T_max):
        """序列不比 T_max 长时，原样返回。

        A sequence that is no longer than T_max comes back whole.
        """
        idx = draw.tokens(1000, 3, T)
        expect.equal(student.crop_context(idx, T_max), idx)

    @pytest.mark.parametrize("T", [1, 2, 7])
    def test_exact_length(self, student, draw, T):
        """恰好 T_max 个字符时，一个也不丢。

        With exactly T_max tokens none is lost.
        """
        idx = draw.tokens(1000, 3, T)
        expect.equal(student.crop_context(idx, T), idx)

    def test_only_the_last_token(self, student, draw):
        """T_max 为 1 时，只剩最后一个字符。

        With T_max = 1 the last token alone is left.
        """
        idx = draw.tokens(1000, 5, 7)
        expect.equal(student.crop_context(idx, 1), idx[:, 6:])

    def test_batch_is_kept(self, student, draw):
        """B 等于 T 时，剪短的是时间，不是 batch；只有一条序列时也一样。

        With B equal to T it is time that is cropped, not the batch; the same goes for a single sequence.
        """
        square, single = draw.tokens(1000, 5, 5), draw.tokens(1000, 1, 5)
        expect.equal(student.crop_context(square, 2), square[:, 3:])
        expect.equal(student.crop_context(single, 2), single[:, 3:])

    def test_input_left_unchanged(self, student, draw):
        """调用之后 idx 与原来一样。

        idx is the same after the call.
        """
        idx = draw.tokens(1000, 2, 7)
        expect.equal(
            student.crop_context.inputs_after(idx, 4)[0], idx, Text(zh="调用之后的 idx", en="idx after the call")
        )
        expect.equal(student.crop_context(idx, 4), idx[:, 3:])


# ---------------------------------------------------------------- cross_attention


def _cross_inputs(draw, B, T_out, T_in, C, C2, d, dtype=torch.float64, scale=1.0):
    shapes = ((B, T_out, C), (B, T_in, C2), (C, d), (C2, d), (C2, d))
    return [draw(*shape, dtype=dtype, scale=scale) for shape in shapes]


def _cross(X_out, X_enc, Wq, Wk, Wv):
    """Output and weights, written apart from the reference."""
    q, k, v = (torch.einsum("btc,cd->btd", X, W) for X, W in ((X_out, Wq), (X_enc, Wk), (X_enc, Wv)))
    A = F.softmax(torch.einsum("bod,bid->boi", q, k) / math.sqrt(Wq.shape[1]), dim=-1)  # (B, T_out, T_in)
    return torch.einsum("boi,bid->bod", A, v), A


def _expect_cross(student, inputs):
    for got, want, name in zip(student.cross_attention(*inputs), _cross(*inputs), ("Y", "A"), strict=True):
        expect.close(got, want, Text(zh=name, en=name))


@pytest.mark.exercise("cross_attention")
class TestCrossAttention:
    @pytest.mark.weight(2)
    def test_all_sizes_differ(self, student, draw):
        """输出和权重都对（B、T_out、T_in、C、C2、d 各不相同）。

        Output and weights are right (B, T_out, T_in, C, C2 and d all differ).
        """
        _expect_cross(student, _cross_inputs(draw, *draw.primes(6), scale=0.5))

    @pytest.mark.weight(2)
    @pytest.mark.parametrize(("n", "d"), [(4, 4), (5, 3)])
    def test_equal_sizes(self, student, draw, n, d):
        """两边长度、宽度都相等时也对：分得清谁提问、谁被查。

        Right too when both sides are equally long and wide: who asks and who is searched must not be confused.
        """
        _expect_cross(student, _cross_inputs(draw, n, n, n, n, n, d, scale=0.7))

    def test_rows_add_up_to_one(self, student, draw):
        """权重的每一行，在编码器的位置之间加起来是 1。

        Each row of weights adds up to 1 over the encoder's positions.
        """
        inputs = _cross_inputs(draw, *draw.primes(6), scale=0.5)
        A = student.cross_attention(*inputs)[1]  # (B, T_out, T_in)
        expect.close(A.sum(-1), torch.ones(A.shape[:2], dtype=A.dtype), Text(zh="行和", en="the row sums"))
        expect.that(bool((A >= 0).all()), Text(zh="权重不应为负。", en="No weight should be negative."))

    def test_encoder_is_visible_as_a_whole(self, student, draw):
        """改动编码器的最后一个位置，第一个输出就会变：这里没有未来可遮。

        Changing the encoder's last position moves the first output: there is no future to hide here.
        """
        inputs = _cross_inputs(draw, 2, 3, 5, 4, 7, 6)
        inputs[0] *= 0.1
        inputs[1] *= 0.1  # moderate scores: a saturated softmax could ignore the last position
        changed = [x.clone() for x in inputs]
        changed[1][:, -1] += 1.0
        before, after = student.cross_attention(*inputs)[0], student.cross_attention(*changed)[0]
        expect.differs(before[:, 0], after[:, 0], by=1e-3, what=Text(zh="第一个输出", en="the first output"))

    @pytest.mark.parametrize(("T_out", "T_in"), [(1, 1), (1, 5), (5, 1), (13, 2), (2, 13)])
    def test_lengths(self, student, draw, T_out, T_in):
        """一边只有一个位置，或一边长得多，都行；B = 1 也行。

        One position on a side works, and so does one side far longer than the other; B = 1 works as well.
        """
        _expect_cross(student, _cross_inputs(draw, 1, T_out, T_in, 3, 2, 4, scale=0.5))

    def test_large_scores(self, student, draw):
        """分数到了上千也不出现 NaN。

        Scores in the thousands give no NaN.
        """
        _expect_cross(student, _cross_inputs(draw, 2, 3, 5, 4, 4, 4, scale=8.0))

    def test_single_precision(self, student, draw):
        """float32 的输入给出 float32 的结果，数值也对。

        float32 inputs give float32 results, and the right ones.
        """
        _expect_cross(student, _cross_inputs(draw, 2, 3, 5, 4, 6, 7, dtype=torch.float32, scale=0.5))

    def test_gradients_reach_every_input(self, student, draw):
        """五个输入都收到正确的梯度。

        All five inputs get the right gradients.
        """
        inputs = _cross_inputs(draw, 2, 3, 4, 5, 2, 3, scale=0.7)
        g = draw(2, 3, 3)
        leaves = [x.clone().requires_grad_() for x in inputs]
        wants = torch.autograd.grad((_cross(*leaves)[0] * g).sum(), leaves)
        gots = student.cross_attention.gradients(*inputs, cotangent=g, output=0)
        for i, (got, want) in enumerate(zip(gots, wants, strict=True)):
            expect.that(
                got is not None, Text(zh=f"第 {i + 1} 个输入收不到梯度。", en=f"No gradient reaches input {i + 1}.")
            )
            expect.close(got, want, Text(zh=f"对第 {i + 1} 个输入的梯度", en=f"the gradient for input {i + 1}"))

    def test_inputs_left_unchanged(self, student, draw):
        """调用之后，五个输入与原来一样。

        The five inputs are the same after the call.
        """
        inputs = _cross_inputs(draw, 2, 3, 3, 4, 4, 4, scale=0.5)
        for got, want in zip(student.cross_attention.inputs_after(*inputs), inputs, strict=True):
            expect.equal(got, want, Text(zh="调用之后的输入", en="the inputs after the call"))
        _expect_cross(student, inputs)


# ---------------------------------------------------------------- dropout_row_sums


def _causal_weights(draw, B, T):
    scores = draw(B, T, T).masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
    return scores.softmax(-1)  # (B, T, T)


SUMS = Text(zh="一次抽样的行和", en="the row sums of one sample")
MEAN = Text(zh="行和的平均", en="the mean of the row sums")


def _sums_and_mean(student, A, p, n):
    """The row sums of one sample (B, T), and their mean over n samples: a tensor (B, T), or () if it is over the rows as well."""
    got = student.dropout_row_sums.loosely(A, p, n)
    rows = A.sum(-1)  # (B, T)
    return conform(got, (rows, rows.mean() if _ends_in_a_number(got) else rows), RESULT)


def _ends_in_a_number(got):
    last = got[-1] if isinstance(got, (tuple, list)) and got else None
    return isinstance(last, (int, float)) or (isinstance(last, torch.Tensor) and last.dim() == 0)


def _expect_mean(mean, rows):
    expect.close(mean, rows if mean.dim() else rows.mean(), MEAN)


RESULT = Text(zh="dropout_row_sums 的结果", en="the result of dropout_row_sums")


@pytest.mark.exercise("dropout_row_sums")
class TestDropoutRowSums:
    def test_nothing_dropped_at_zero(self, student, draw):
        """p = 0 时两个结果都恰是 A 的行和，行和不是 1 的 A 也一样。

        With p = 0 both results are the row sums of A, also when those are not 1.
        """
        for shape in ((2, 5, 5), (1, 1, 1), (4, 4, 4)):
            A = draw(*shape)
            sums, mean = _sums_and_mean(student, A, 0.0, 3)
            expect.close(sums, A.sum(-1), SUMS)
            _expect_mean(mean, A.sum(-1))

    @pytest.mark.weight(2)
    def test_single_weights_are_dropped(self, student, draw):
        """丢掉的是一个个权重，概率是 p，留下的除以 1-p。

        Single weights are dropped, with probability p, and those that stay are divided by 1-p.
        """
        B, T, p = 60, 5, 0.25
        powers = 2.0 ** torch.arange(T, dtype=torch.float64)  # (T,): a sum of some of them tells which
        A = (powers / powers.sum()).expand(B, T, T).contiguous()  # (B, T, T)
        code = _sums_and_mean(student, A, p, 2)[0] * (1 - p) * powers.sum()  # (B, T)
        expect.close(code, code.round(), Text(zh="放大之前的行和", en="the row sums before scaling"))
        kept = (code.round().long()[..., None] >> torch.arange(T)) & 1  # (B, T, T)
        rate = float(kept.double().mean())
        said = Text(
            zh=f"留下的比例应约为 {1 - p}，得到 {rate:.2f}。",
            en=f"A share of about {1 - p} should stay; {rate:.2f} did.",
        )
        expect.that(abs(rate - (1 - p)) < 0.1, said)  # 1500 weights: standard deviation 0.011
        together = Text(zh="有些权重总是一起丢掉。", en="Some weights are always dropped together.")
        for axis in range(3):  # sequences, receivers, sources: no two neighbours along an axis may always agree
            expect.that(bool((kept.roll(1, axis) != kept).any()), together)

    @pytest.mark.weight(2)
    def test_one_sample_is_off(self, student, draw):
        """一次抽样里，有的行和明显不是 1，且不超过 1/(1-p)。

        In one sample some row sums are clearly not 1, and none exceeds 1/(1-p).
        """
        for p in (0.2, 0.5):
            sums = _sums_and_mean(student, _causal_weights(draw, 11, 7), p, 2)[0]  # (B, T)
            expect.differs(sums, torch.ones_like(sums), by=0.05, what=SUMS)
            bound = Text(zh="行和应在 0 与 1/(1-p) 之间。", en="Row sums should lie between 0 and 1/(1-p).")
            expect.that(bool(((sums >= 0) & (sums < 1 / (1 - p) + 1e-9)).all()), bound)

    @pytest.mark.weight(2)
    def test_mean_is_close_to_one(self, student, draw):
        """2000 次抽样的平均，每一行都接近 1，但不恰好是 1：它来自抽样。

        The mean over 2000 samples is close to 1 in every row, yet not exactly 1: it comes from samples.
        """
        A = _causal_weights(draw, 2, 5)
        mean = _sums_and_mean(student, A, 0.2, 2000)[1]  # standard deviation at most 0.011
        far = float((mean - 1).abs().max())
        expect.that(
            far < 0.1,
            Text(
                zh=f"平均应接近 1，最远的差 {far:.2f}。", en=f"The mean should be close to 1; it is off by {far:.2f}."
            ),
        )
        expect.differs(
            mean,
            torch.ones_like(mean),
            by=1e-9,
            what=Text(zh="抽样的平均与恰好的 1", en="the sampled mean and exactly 1"),
        )

    def test_n_samples(self, student, draw):
        """平均取的是 n 次抽样，每次重新丢弃。

        The mean is taken over n samples, each dropped anew.
        """
        T = 4
        # Powers of 4, each added at most 3 times: the total tells how often each was.
        powers = 4.0 ** torch.arange(T * T, dtype=torch.float64)
        A = powers.view(1, T, T)
        for n in (1, 3):
            counts = []
            for _ in range(10):
                mean = _sums_and_mean(student, A, 0.5, n)[1]  # (1, T) or ()
                total = (float(mean.sum()) if mean.dim() else T * float(mean)) * n / 2
                whole = Text(
                    zh=f"n = {n} 时，留下的次数不是整数。",
                    en=f"With n = {n}, weights stayed a fractional number of times.",
                )
                expect.that(abs(total - round(total)) < 1e-3, whole)
                counts += [round(total) >> 2 * i & 3 for i in range(T * T)]
            values = Text(
                zh=f"n = {n} 时留下的次数应从 0 到 {n} 都有。",
                en=f"With n = {n}, counts from 0 to {n} should all occur.",
            )
            expect.that(sorted(set(counts)) == list(range(n + 1)), values)

    def test_single_precision_and_input(self, student, draw):
        """float32 的 A 给出 float32 的结果，A 不变。

        A float32 A gives float32 results, and A is left unchanged.
        """
        A = _causal_weights(draw, 3, 4).float()
        sums, mean = _sums_and_mean(student, A, 0.0, 2)
        expect.close(sums, A.sum(-1), SUMS)
        _expect_mean(mean, A.sum(-1))
        after = student.dropout_row_sums.inputs_after(A, 0.5, 2)[0]
        expect.equal(after, A, Text(zh="调用之后的 A", en="A after the call"))


# ---------------------------------------------------------------- value_shift


def _shift_inputs(draw, B, T, d, p, dtype=torch.float64):
    A = draw(B, T, T, dtype=dtype).softmax(-1)
    return [A, draw(B, T, d, dtype=dtype), draw(d, dtype=dtype), draw.uniform(B, T, T) >= p, p]


WITHOUT = Text(zh="没有 dropout 时的变化", en="the change without dropout")
WITH = Text(zh="有 dropout 时的变化", en="the change with dropout")


def _expect_shift(student, inputs):
    """The shift is the row sum times c: written without any values."""
    A, _, c, keep, p = inputs
    without, with_dropout = student.value_shift(*inputs)  # each (B, T, d)
    expect.close(without, A.sum(-1, keepdim=True) * c, WITHOUT)
    expect.close(with_dropout, (A * keep).sum(-1, keepdim=True) / (1 - p) * c, WITH)


@pytest.mark.exercise("value_shift")
class TestValueShift:
    @pytest.mark.weight(2)
    def test_shift_without_dropout(self, student, draw):
        """行和为 1、没有 dropout 时，输出恰好移动 c，V 是什么都一样。

        With rows that add up to 1 and no dropout the output moves by exactly c, whatever V is.
        """
        B, T, d = draw.primes(3)
        A, V, c, keep, p = _shift_inputs(draw, B, T, d, 0.5)
        for values in (V, torch.zeros_like(V), 100 * V):
            got = student.value_shift(A, values, c, keep, p)[0]
            expect.close(got / 100, c.expand(B, T, d) / 100, WITHOUT)

    @pytest.mark.weight(2)
    @pytest.mark.parametrize("p", [0.25, 0.5, 0.9])
    def test_shift_with_dropout(self, student, draw, p):
        """有 dropout 时，输出移动的是 c 乘以那一行留下的权重之和（除以 1-p 之后）。

        With dropout the output moves by c times the sum of the weights that stay in that row (after dividing by 1-p).
        """
        _expect_shift(student, _shift_inputs(draw, *draw.primes(3), p))

    def test_equal_sizes(self, student, draw):
        """B、T、d 相等时也对：c 加在特征上，不是加在位置上。

        Right too when B, T and d are equal: c is added to the features, not along the positions.
        """
        _expect_shift(student, _shift_inputs(draw, 4, 4, 4, 0.4))

    def test_any_row_sums(self, student, draw):
        """A 的行和不是 1 时也对；整行被丢掉时，移动恰好是 0。

        Right for an A whose rows do not add up to 1; where a whole row is dropped the shift is exactly 0.
        """
        _, V, c, keep, p = _shift_inputs(draw, 2, 5, 3, 0.5)
        keep[:, 1] = False
        inputs = [3 * draw(2, 5, 5), V, c, keep, p]
        _expect_shift(student, inputs)
        expect.zero(student.value_shift(*inputs)[1][:, 1], WITH)

    def test_kinds_of_keep(self, student, draw):
        """keep 是布尔、整数 0/1 或浮点 0/1，结果都一样；p = 0 且全部留下时，两个结果相等。

        keep may be boolean, integer 0/1 or float 0/1; with p = 0 and everything kept the two results agree.
        """
        A, V, c, keep, p = _shift_inputs(draw, 2, 3, 4, 0.3)
        for kind in (keep, keep.long(), keep.double()):
            _expect_shift(student, [A, V, c, kind, p])
        _expect_shift(student, [A, V, c, torch.ones_like(keep), 0.0])

    def test_single_position_and_precision(self, student, draw):
        """T = 1 也行；float32 的输入给出 float32 的结果。

        T = 1 works; float32 inputs give float32 results.
        """
        _expect_shift(student, _shift_inputs(draw, 3, 1, 2, 0.5))
        _expect_shift(student, _shift_inputs(draw, 2, 5, 3, 0.5, dtype=torch.float32))

    def test_inputs_left_unchanged(self, student, draw):
        """调用之后，传入的张量与原来一样。

        The tensors passed in are the same after the call.
        """
        inputs = _shift_inputs(draw, 2, 3, 3, 0.5)
        for got, want in zip(student.value_shift.inputs_after(*inputs)[:4], inputs[:4], strict=True):
            expect.equal(got, want, Text(zh="调用之后的输入", en="the inputs after the call"))
        _expect_shift(student, inputs)
