"""Hidden tests of notebook 1: prefix means, masks and softmax weights."""

import math

import pytest
import torch

from autograder.judge import expect
from autograder.text import Text

BOOK_X = torch.tensor([[2.0, 0.0], [0.0, 4.0], [4.0, 2.0]], dtype=torch.float64)  # (T, C) = (3, 2)
BOOK_MEANS = torch.tensor([[2.0, 0.0], [1.0, 2.0], [2.0, 2.0]], dtype=torch.float64)  # (T, C)


def causal(T):
    return torch.ones(T, T, dtype=torch.bool).tril()  # (T, T)


def near_a_thousand(T):
    """Offsets for scores: all 1000, all -1000, and -1000 with 1000 on the diagonal, where no future is largest."""
    ones = torch.ones(T, T, dtype=torch.float64)
    return 1000 * torch.stack([ones, -ones, 2 * torch.eye(T, dtype=torch.float64) - ones])  # (3, T, T)


@pytest.mark.exercise("prefix_mean_loop")
class TestPrefixMeanLoop:
    def test_book_numbers(self, student):
        """书上的三个位置得到 (2,0)、(1,2)、(2,2)。

        The book's three positions give (2,0), (1,2), (2,2).
        """
        expect.close(student.prefix_mean_loop(BOOK_X), BOOK_MEANS)

    def test_first_row_is_unchanged(self, student, draw):
        """第 0 行只有自己，平均之后不变。

        Row 0 has only itself, so averaging leaves it as it is.
        """
        X = draw(5, 3)  # (T, C)
        expect.close(student.prefix_mean_loop(X)[0], X[0])

    def test_equal_rows_stay(self, student, draw):
        """所有的行都相同时，每个位置的平均还是那一行。

        When all rows are equal, the mean at every position is that row.
        """
        X = draw(1, 4).repeat(9, 1)  # (T, C)
        expect.close(student.prefix_mean_loop(X), X)

    def test_future_changes_nothing(self, student, draw):
        """改动后面的行，前面的结果不变。

        Changing later rows leaves earlier results as they are.
        """
        X = draw(7, 3)  # (T, C)
        changed = torch.cat([X[:4], draw(3, 3, scale=100.0)])  # (T, C)
        expect.close(student.prefix_mean_loop(changed)[:4], student.prefix_mean_loop(X)[:4])

    @pytest.mark.weight(2)
    def test_other_sizes(self, student, reference, draw):
        """在别的形状上也对：一个位置、一个特征、T 等于 C、很长的序列。

        Right for other shapes too: one position, one feature, T equal to C, a long sequence.
        """
        for T, C in ((1, 3), (5, 1), (4, 4), tuple(draw.primes(2)), (70, 2)):
            X = draw(T, C)
            expect.close(student.prefix_mean_loop(X), reference.prefix_mean_loop(X))

    def test_dtype_follows_the_input(self, student, reference, draw):
        """输入是 float32 时，结果也是 float32。

        For a float32 input the result is float32.
        """
        X = draw(6, 3, dtype=torch.float32)
        expect.close(student.prefix_mean_loop(X), reference.prefix_mean_loop(X))

    def test_input_is_left_unchanged(self, student, draw):
        """调用之后，传进来的 X 没有变。

        After the call, the X that was passed in is unchanged.
        """
        X = draw(4, 3)
        expect.equal(student.prefix_mean_loop.inputs_after(X)[0], X)


@pytest.mark.exercise("averaging_matrix")
class TestAveragingMatrix:
    def test_rows_sum_to_one(self, student):
        """每一行加起来是 1。

        Every row adds up to 1.
        """
        for T in (1, 3, 6, 20):
            expect.close(student.averaging_matrix(T).sum(-1), torch.ones(T))

    def test_future_is_exactly_zero(self, student):
        """右上角（未来）恰好是 0。

        The upper right, the future, is exactly 0.
        """
        for T in (2, 6, 20):
            expect.zero(student.averaging_matrix(T).triu(1))

    def test_fourth_row_is_quarters(self, student):
        """第 3 行在前四列上各是 1/4。

        Row 3 holds 1/4 in each of its first four columns.
        """
        expect.close(student.averaging_matrix(6)[3], torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0, 0.0]))

    def test_product_is_the_prefix_mean(self, student):
        """乘上书上的 X，得到前缀平均。

        Times the book's X it gives the prefix means.
        """
        expect.close(student.averaging_matrix(3) @ BOOK_X.float(), BOOK_MEANS.float())

    @pytest.mark.weight(2)
    def test_any_length(self, student, reference):
        """对任意的 T 都对，从 1 到比例子长得多。

        Right for any T, from 1 to far above the examples.
        """
        for T in (1, 2, 5, 11, 130):
            expect.close(student.averaging_matrix(T), reference.averaging_matrix(T))


@pytest.mark.exercise("prefix_mean")
class TestPrefixMean:
    def test_book_numbers(self, student):
        """书上的 X 和它的十倍放在一批里，各得各的前缀平均。

        The book's X and ten times X in one batch give their own prefix means.
        """
        X = torch.stack([BOOK_X, 10 * BOOK_X])  # (B, T, C) = (2, 3, 2)
        expect.close(student.prefix_mean(X), torch.stack([BOOK_MEANS, 10 * BOOK_MEANS]))

    @pytest.mark.weight(2)
    def test_three_different_sizes(self, student, reference, draw):
        """B、T、C 各不相同时，与逐个位置平均的结果一致。

        With B, T and C all different it agrees with averaging position by position.
        """
        for B, T, C in (draw.primes(3), (3, 130, 2)):
            X = draw(B, T, C)
            expect.close(student.prefix_mean(X), reference.prefix_mean(X))

    def test_three_equal_sizes(self, student, reference, draw):
        """B、T、C 都等于 4 时也对：轴弄错了，这里不会报错，只会算错。

        Right with B, T and C all 4: there a mixed-up axis raises no error, it just gives wrong numbers.
        """
        X = draw(4, 4, 4)
        expect.close(student.prefix_mean(X), reference.prefix_mean(X))

    def test_sequences_do_not_mix(self, student, draw):
        """改动一条序列，别的序列的结果不变；单独算一条，结果也一样。

        Changing one sequence leaves the others as they are, and a sequence alone gives the same as in a batch.
        """
        X = draw(3, 5, 2)  # (B, T, C)
        changed = torch.cat([X[:2], draw(1, 5, 2, scale=100.0)])
        first = student.prefix_mean(X)[:2]
        expect.close(student.prefix_mean(changed)[:2], first)
        expect.close(student.prefix_mean(X[:1]), first[:1])

    def test_future_changes_nothing(self, student, draw):
        """改动后面的位置，前面的结果不变。

        Changing later positions leaves earlier results as they are.
        """
        X = draw(2, 6, 3)  # (B, T, C)
        changed = torch.cat([X[:, :4], draw(2, 2, 3, scale=100.0)], dim=1)
        expect.close(student.prefix_mean(changed)[:, :4], student.prefix_mean(X)[:, :4])

    def test_smallest_sizes(self, student, reference, draw):
        """只有一个位置、一条序列或一个特征时也对。

        Right with a single position, a single sequence, or a single feature.
        """
        for shape in ((3, 1, 2), (1, 5, 3), (2, 4, 1), (1, 1, 1)):
            X = draw(*shape)
            expect.close(student.prefix_mean(X), reference.prefix_mean(X))

    def test_dtype_follows_the_input(self, student, reference, draw):
        """输入是 float32 时，结果也是 float32。

        For a float32 input the result is float32.
        """
        X = draw(2, 5, 3, dtype=torch.float32)
        expect.close(student.prefix_mean(X), reference.prefix_mean(X))

    def test_input_is_left_unchanged(self, student, draw):
        """调用之后，传进来的 X 没有变。

        After the call, the X that was passed in is unchanged.
        """
        X = draw(2, 4, 3)
        expect.equal(student.prefix_mean.inputs_after(X)[0], X)


@pytest.mark.exercise("causal_mask")
class TestCausalMask:
    def test_shape_and_dtype(self, student):
        """结果是形状 (T, T) 的布尔张量。

        The result is a boolean tensor of shape (T, T).
        """
        student.causal_mask(3)

    @pytest.mark.after("test_shape_and_dtype")
    def test_position_sees_itself(self, student):
        """对角线是 True：当前位置可以看自己。

        The diagonal is True: a position may see itself.
        """
        for T in (1, 4, 9):
            expect.that(
                bool(student.causal_mask(T).diagonal().all()),
                Text(zh="对角线上有 False。", en="The diagonal contains False."),
            )

    @pytest.mark.after("test_shape_and_dtype")
    def test_future_is_blocked(self, student):
        """右上角是 False：看不到未来。

        The upper right is False: the future is out of sight.
        """
        for T in (2, 4, 9):
            peeks = student.causal_mask(T).triu(1).any()
            expect.that(
                not peeks, Text(zh="对角线右上方有 True。", en="There is a True to the upper right of the diagonal.")
            )

    @pytest.mark.after("test_shape_and_dtype")
    def test_past_is_allowed(self, student):
        """各行 True 的个数依次是 1, 2, …, T。

        The rows hold 1, 2, …, T entries that are True.
        """
        expect.equal(
            student.causal_mask(6).sum(-1),
            torch.arange(1, 7),
            Text(zh="每行 True 的个数", en="The numbers of True in the rows"),
        )

    @pytest.mark.after("test_shape_and_dtype")
    @pytest.mark.weight(2)
    def test_any_length(self, student, reference):
        """对任意的 T 都对，从 1 到比例子长得多。

        Right for any T, from 1 to far above the examples.
        """
        for T in (1, 2, 7, 300):
            expect.equal(student.causal_mask(T), reference.causal_mask(T))


@pytest.mark.exercise("masked_softmax")
class TestMaskedSoftmax:
    def test_rows_sum_to_one(self, student, draw):
        """每一行的权重加起来是 1，前面有几根轴都一样。

        Every row of weights adds up to 1, whatever axes come first.
        """
        T = 5
        for leading in ((), (3,), (2, 3)):
            weights = student.masked_softmax(draw(*leading, T, T), causal(T))  # (..., T, T)
            expect.close(weights.sum(-1), torch.ones(*leading, T, dtype=torch.float64))

    def test_blocked_get_exactly_zero(self, student, draw):
        """被遮住的来源权重恰好是 0，无论它原来的分数是多少。

        Blocked sources get a weight of exactly 0, whatever their scores were.
        """
        allowed = causal(6)
        for scores in (draw(2, 6, 6), draw(2, 6, 6) - 1000, draw(2, 6, 6) + 400.0 * ~allowed):
            weights = student.masked_softmax(scores, allowed)  # (B, T, T)
            expect.zero(weights[:, ~allowed])
            expect.close(weights.sum(-1), torch.ones(2, 6, dtype=torch.float64))

    def test_equal_scores_average(self, student):
        """分数全是 0 时，第 t 行是 1/(t+1)：0 是普通的分数，不表示遮住。

        With scores of 0, row t is 1/(t+1): 0 is a score like any other and does not mean blocked.
        """
        want = torch.tensor([[1.0, 0.0, 0.0], [1 / 2, 1 / 2, 0.0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64)
        expect.close(student.masked_softmax(torch.zeros(3, 3, dtype=torch.float64), causal(3)), want)

    def test_exponential_ratio(self, student, draw):
        """两个允许的来源，权重之比等于分数之差的指数。

        For two allowed sources, the ratio of weights is the exponential of the difference of scores.
        """
        scores = draw(2, 4, 4)  # (B, T, T)
        last = student.masked_softmax(scores, causal(4))[:, -1]  # (B, T)
        expect.close(last[:, 1:] / last[:, :1], (scores[:, -1, 1:] - scores[:, -1, :1]).exp())

    @pytest.mark.weight(2)
    def test_any_mask_and_any_leading_axes(self, student, reference, draw):
        """对不是下三角的遮罩、前面零到三根轴、很小和较大的 T 都对。

        Right for masks that are not triangular, for none to three axes in front, and for small and larger T.
        """
        for shape in ((1, 1), (5, 5), (3, 7, 7), (2, 3, 4, 4), (2, 1, 3, 5, 5), (20, 20)):
            scores, allowed = draw(*shape), draw.mask(*shape[-2:])
            expect.close(student.masked_softmax(scores, allowed), reference.masked_softmax(scores, allowed))

    def test_blocked_scores_do_not_matter(self, student, draw):
        """改动被遮住的分数，权重不变。

        Changing the scores of blocked sources leaves the weights as they are.
        """
        allowed, scores = draw.mask(5, 5), draw(3, 5, 5)
        changed = torch.where(allowed, scores, draw(3, 5, 5, scale=3.0))
        expect.close(student.masked_softmax(changed, allowed), student.masked_softmax(scores, allowed))

    def test_scores_near_a_thousand(self, student, reference, draw):
        """分数在 1000 左右、在 -1000 左右、一行里两样都有，权重都是对的。

        With scores near 1000, near -1000, and both in one row, the weights are right.
        """
        scores = draw(3, 5, 5) + near_a_thousand(5)
        expect.close(student.masked_softmax(scores, causal(5)), reference.masked_softmax(scores, causal(5)))

    def test_dtype_follows_the_scores(self, student, reference, draw):
        """分数是 float32 时，权重也是 float32。

        For float32 scores the weights are float32.
        """
        scores, allowed = draw(2, 4, 4, dtype=torch.float32), draw.mask(4, 4)
        expect.close(student.masked_softmax(scores, allowed), reference.masked_softmax(scores, allowed))

    def test_inputs_are_left_unchanged(self, student, draw):
        """调用之后，传进来的分数和遮罩没有变。

        After the call, the scores and the mask that were passed in are unchanged.
        """
        scores, allowed = draw(2, 4, 4), causal(4)
        after = student.masked_softmax.inputs_after(scores, allowed)
        expect.equal(after[0], scores, Text(zh="调用之后的分数", en="The scores after the call"))
        expect.equal(after[1], allowed, Text(zh="调用之后的遮罩", en="The mask after the call"))

    def test_gradients_reach_the_scores(self, student, reference, draw):
        """梯度传得回分数，数值也对：模型要靠它来学习。

        Gradients reach the scores and are right: they are what a model learns from.
        """
        scores, cotangent, allowed = draw(2, 4, 4), draw(2, 4, 4), causal(4)
        got = student.masked_softmax.gradients(scores, allowed, cotangent=cotangent)[0]
        want = reference.masked_softmax.gradients(scores, allowed, cotangent=cotangent)[0]
        expect.that(got is not None, Text(zh="没有梯度传回分数。", en="No gradient reaches the scores."))
        expect.close(got, want)


@pytest.mark.exercise("late_mask_row_sums")
class TestLateMaskRowSums:
    def test_equal_scores(self, student):
        """分数全是 0 时，第 t 行剩下 (t+1)/T。

        With scores of 0, (t+1)/T is left of row t.
        """
        want = torch.tensor([0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
        expect.close(student.late_mask_row_sums(torch.zeros(4, 4, dtype=torch.float64)), want)

    def test_only_the_last_row_is_whole(self, student, draw):
        """只有最后一行还是 1，前面的都小于 1。

        Only the last row is 1 still; all others are less.
        """
        sums = student.late_mask_row_sums(draw(3, 6, 6))  # (B, T)
        expect.close(
            sums[:, -1], torch.ones(3, dtype=torch.float64), Text(zh="最后一行的和", en="The sums of the last row")
        )
        less = bool((sums[:, :-1] < 1 - 1e-9).all())
        expect.that(
            less, Text(zh="前面有一行的和不小于 1。", en="A row before the last does not add up to less than 1.")
        )

    @pytest.mark.weight(2)
    def test_any_leading_axes(self, student, reference, draw):
        """前面零到两根轴、T 从 1 到 20，都与先 softmax 后遮罩的结果一致。

        For none to two axes in front and T from 1 to 20, it is what softmax first and the mask afterwards gives.
        """
        for shape in ((1, 1), (5, 5), (3, 7, 7), (2, 3, 4, 4), (20, 20)):
            scores = draw(*shape)
            expect.close(student.late_mask_row_sums(scores), reference.late_mask_row_sums(scores))

    def test_scores_near_a_thousand(self, student, reference, draw):
        """分数在 ±1000 左右时也对。

        Right for scores near ±1000 too.
        """
        scores = draw(3, 5, 5) + near_a_thousand(5)
        expect.close(student.late_mask_row_sums(scores), reference.late_mask_row_sums(scores))

    def test_dtype_follows_the_scores(self, student, reference, draw):
        """分数是 float32 时，结果也是 float32。

        For float32 scores the result is float32.
        """
        scores = draw(2, 4, 4, dtype=torch.float32)
        expect.close(student.late_mask_row_sums(scores), reference.late_mask_row_sums(scores))

    def test_input_is_left_unchanged(self, student, draw):
        """调用之后，传进来的分数没有变。

        After the call, the scores that were passed in are unchanged.
        """
        scores = draw(2, 4, 4)
        expect.equal(student.late_mask_row_sums.inputs_after(scores)[0], scores)


def apart(scores):
    """How far softmax over dim=1 and over dim=-1 are apart at most."""
    return float((scores.softmax(dim=1) - scores.softmax(dim=-1)).abs().max())


@pytest.mark.exercise("axis_examples")
class TestAxisExamples:
    def test_two_score_tensors(self, student):
        """返回两个形状 (1, 3, 3) 的浮点张量，所有数有限。

        Two floating-point tensors of shape (1, 3, 3) come back, all their numbers finite.
        """
        student.axis_examples()

    @pytest.mark.after("test_two_score_tensors")
    def test_first_one_differs(self, student):
        """在第一个张量上，dim=1 与 dim=-1 至少有一处相差超过 0.1。

        On the first tensor, dim=1 and dim=-1 are more than 0.1 apart somewhere.
        """
        gap = apart(student.axis_examples()[0])
        expect.that(gap > 0.1, Text(zh=f"最多只差 {gap:.3g}。", en=f"They are at most {gap:.3g} apart."))

    @pytest.mark.after("test_two_score_tensors")
    def test_second_one_agrees(self, student):
        """在第二个张量上，dim=1 与 dim=-1 处处相差不超过 1e-6。

        On the second tensor, dim=1 and dim=-1 are nowhere more than 1e-6 apart.
        """
        gap = apart(student.axis_examples()[1])
        expect.that(gap <= 1e-6, Text(zh=f"相差达到 {gap:.3g}。", en=f"They are up to {gap:.3g} apart."))

    @pytest.mark.after("test_two_score_tensors")
    def test_second_one_varies(self, student):
        """第二个张量的分数有大有小：最大与最小相差超过 0.1。

        The scores of the second tensor vary: largest and smallest are more than 0.1 apart.
        """
        agree = student.axis_examples()[1]
        spread = float(agree.max() - agree.min())
        expect.that(
            spread > 0.1, Text(zh=f"最大与最小只差 {spread:.3g}。", en=f"Largest and smallest are {spread:.3g} apart.")
        )


LOG_2 = math.log(2.0)
BOOK_SCORES = torch.tensor([0.0, LOG_2, 0.0], dtype=torch.float64)  # (n,)
BOOK_VALUES = torch.tensor([2.0, 4.0, 10.0], dtype=torch.float64)  # (n,)


@pytest.mark.exercise("attend_row")
class TestAttendRow:
    def test_book_weights(self, student):
        """分数 [0, log 2, 0] 的权重是 [1/4, 1/2, 1/4]。

        Scores [0, log 2, 0] give the weights [1/4, 1/2, 1/4].
        """
        weights, _ = student.attend_row(BOOK_SCORES, BOOK_VALUES)
        expect.close(weights, torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64))

    def test_book_output(self, student):
        """value 为 2、4、10 时，输出是 5。

        For the values 2, 4, 10 the output is 5.
        """
        _, output = student.attend_row(BOOK_SCORES, BOOK_VALUES)
        expect.close(output, torch.tensor(5.0, dtype=torch.float64))

    def test_adding_to_all_scores_changes_nothing(self, student, draw):
        """所有分数加上同一个数，权重和输出都不变。

        Adding one number to all scores changes neither weights nor output.
        """
        scores, values = draw(5), draw(5)
        expect.close(student.attend_row(scores + 3, values), student.attend_row(scores, values))

    @pytest.mark.weight(2)
    def test_vectors_as_values(self, student, reference, draw):
        """每个来源带一个 d 维向量时也对，包括 d 等于 n 和 d 等于 1。

        Right when each source carries a d-vector, also for d equal to n and for d equal to 1.
        """
        for n, d in (draw.primes(2), (4, 4), (5, 1)):
            scores, values = draw(n), draw(n, d)
            expect.close(student.attend_row(scores, values), reference.attend_row(scores, values))

    def test_any_number_of_sources(self, student, reference, draw):
        """从一个来源到几十个来源都对。

        Right for one source and for dozens of them.
        """
        for n in (1, 2, 40):
            scores, values = draw(n), draw(n)
            expect.close(student.attend_row(scores, values), reference.attend_row(scores, values))
        scores, values = draw(1), draw(1, 3)
        expect.close(student.attend_row(scores, values), reference.attend_row(scores, values))

    def test_scores_near_a_thousand(self, student, reference, draw):
        """分数在 1000 左右、在 -1000 左右、两样都有时也对。

        Right for scores near 1000, near -1000, and both together.
        """
        for offset in near_a_thousand(4)[:, 0]:
            scores, values = draw(4) + offset, draw(4, 2)
            expect.close(student.attend_row(scores, values), reference.attend_row(scores, values))

    def test_dtype_follows_the_inputs(self, student, reference, draw):
        """输入是 float32 时，权重和输出也是 float32。

        For float32 inputs the weights and the output are float32.
        """
        scores, values = draw(4, dtype=torch.float32), draw(4, 3, dtype=torch.float32)
        expect.close(student.attend_row(scores, values), reference.attend_row(scores, values))

    def test_inputs_are_left_unchanged(self, student, draw):
        """调用之后，传进来的分数和 value 没有变。

        After the call, the scores and values that were passed in are unchanged.
        """
        scores, values = draw(4), draw(4, 3)
        after = student.attend_row.inputs_after(scores, values)
        expect.equal(after[0], scores, Text(zh="调用之后的分数", en="The scores after the call"))
        expect.equal(after[1], values, Text(zh="调用之后的 value", en="The values after the call"))
