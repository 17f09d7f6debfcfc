"""Notebook 1: averaging the past is a weighted sum, and softmax makes the weights."""

import torch
import torch.nn.functional as F

from autograder.exercises import alternative, exercise, mistake

# ---------------------------------------------------------------- prefix_mean_loop


@exercise
def prefix_mean_loop(X):
    out = torch.empty_like(X)  # (T, C)
    for t in range(X.shape[0]):
        out[t] = X[: t + 1].mean(dim=0)  # (C,)
    return out


@mistake(
    of=prefix_mean_loop,
    zh="看看第 0 行：切片的右端不算在内，当前位置自己还在吗？",
    en="Look at row 0: a slice leaves its right end out. Is the current position still in it?",
)
def current_position_left_out(X):
    return torch.stack([X[:t].mean(dim=0) for t in range(X.shape[0])])


@mistake(
    of=prefix_mean_loop,
    zh="第 0 行本该原样不变，你的结果里各个特征却变成了同一个数：平均应该沿哪根轴取？",
    en="Row 0 should come out unchanged, yet its features all became one number: which axis should be averaged?",
)
def features_averaged_too(X):
    out = torch.empty_like(X)
    for t in range(X.shape[0]):
        out[t] = X[: t + 1].mean()
    return out


@mistake(
    of=prefix_mean_loop,
    zh="把每一行都相同的输入放进去，平均应当还是那一行；你的结果却越来越大，这是累加。",
    en="Feed in rows that are all equal: their mean is that row, but your result keeps growing. It is a running sum.",
)
def running_sum(X):
    return X.cumsum(dim=0)


@mistake(
    of=prefix_mean_loop,
    zh="每一行都得到了同一个结果：第 t 行用到了它还不该知道的位置。",
    en="Every row came out the same: row t used positions it must not know yet.",
)
def whole_sequence(X):
    return X.mean(dim=0).expand_as(X).clone()


@mistake(
    of=prefix_mean_loop,
    zh="只有最后一行是对的：第 t 行里一共加了几项？除数应当跟着 t 变。",
    en="Only the last row is right: how many terms went into row t? The divisor has to follow t.",
)
def divided_by_the_length(X):
    return X.cumsum(dim=0) / X.shape[0]


@mistake(
    of=prefix_mean_loop,
    zh="第 1 行起都偏大：从 0 数到 t 一共有几个位置？",
    en="From row 1 on the values are too large: how many positions are there from 0 to t?",
)
def one_term_too_few_in_the_divisor(X):
    return X.cumsum(dim=0) / torch.arange(X.shape[0], dtype=X.dtype).clamp(min=1)[:, None]


@mistake(
    of=prefix_mean_loop,
    zh="前两行对，第三行起不对：你把上一行的平均和新来的一行各算一半，越早的位置就越轻了。",
    en="Rows 0 and 1 are right, row 2 is not: halving the last mean and the new row makes early positions count less.",
)
def halved_with_the_last_mean(X):
    out = X.clone()
    for t in range(1, X.shape[0]):
        out[t] = (out[t - 1] + X[t]) / 2
    return out


@mistake(
    of=prefix_mean_loop,
    zh="最后一行原样不变，第 0 行却平均了全部位置：你朝未来取了平均，方向反了。",
    en="The last row came out unchanged and row 0 averages everything: you averaged towards the future.",
)
def suffix_mean(X):
    return torch.stack([X[t:].mean(dim=0) for t in range(X.shape[0])])


@mistake(
    of=prefix_mean_loop,
    zh="数值对，可是你把结果写回了传进来的 X：调用者手里的张量被改掉了。",
    en="The numbers are right, but you wrote them into the X that was passed in: the caller's tensor has changed.",
)
def written_into_the_input(X):
    return X.cumsum_(dim=0).div_(torch.arange(1, X.shape[0] + 1, dtype=X.dtype)[:, None])


@alternative(of=prefix_mean_loop)
def stacked_means(X):
    return torch.stack([X[: t + 1].mean(dim=0) for t in range(len(X))])


@alternative(of=prefix_mean_loop)
def running_total(X):
    out, total = torch.zeros_like(X), torch.zeros_like(X[0])
    for t, row in enumerate(X):
        total = total + row
        out[t] = total / (t + 1)
    return out


@alternative(of=prefix_mean_loop)
def incremental_mean(X):
    out = X.clone()
    for t in range(1, X.shape[0]):
        out[t] = out[t - 1] + (X[t] - out[t - 1]) / (t + 1)
    return out


# ---------------------------------------------------------------- averaging_matrix


@exercise
def averaging_matrix(T):
    A = torch.ones(T, T).tril()  # (T, T)
    return A / A.sum(dim=-1, keepdim=True)


@mistake(
    of=averaging_matrix,
    zh="每一行加起来应当是 1，你的第 t 行加起来是 t+1：越往后越大。",
    en="Each row should add up to 1; your row t adds up to t+1, so later positions grow.",
)
def ones_not_normalised(T):
    return torch.ones(T, T).tril()


@mistake(
    of=averaging_matrix,
    zh="只有最后一行加起来是 1：第 t 行里有几个不为零的数？",
    en="Only the last row adds up to 1: how many entries of row t are not zero?",
)
def every_row_over_T(T):
    return torch.ones(T, T).tril() / T


@mistake(
    of=averaging_matrix,
    zh="加起来是 1 的是列，不是行：求和时沿的是哪一维？",
    en="It is the columns that add up to 1, not the rows: along which dimension did you sum?",
)
def columns_normalised(T):
    A = torch.ones(T, T).tril()
    return A / A.sum(dim=0)


@mistake(
    of=averaging_matrix,
    zh="行的和算对了，除的时候却被当成一行、沿列对齐了：想想 (T,) 和 (T, 1) 广播时有什么不同。",
    en="The row sums are right, but the division lined them up with the columns: how do (T,) and (T, 1) broadcast?",
)
def row_sums_without_keepdim(T):
    A = torch.ones(T, T).tril()
    return A / A.sum(dim=-1)


@mistake(
    of=averaging_matrix,
    zh="行是接收位置，列是来源：哪一个角对应未来，应当为零？",
    en="Rows receive and columns provide: which corner stands for the future and has to be zero?",
)
def upper_triangle(T):
    A = torch.ones(T, T).triu()
    return A / A.sum(dim=-1, keepdim=True)


@mistake(
    of=averaging_matrix,
    zh="每行的和是 1，可是每一行都用到了全部位置，包括未来。",
    en="The rows add up to 1, but every row uses all positions, the future included.",
)
def uniform_over_everything(T):
    return torch.full((T, T), 1 / T)


@mistake(
    of=averaging_matrix,
    zh="第 0 行没有任何可用的位置，除以 0 得到了 NaN：当前位置可以看自己。",
    en="Row 0 has no position left and 0/0 gives NaN: a position may see itself.",
)
def diagonal_left_out(T):
    A = torch.ones(T, T).tril(-1)
    return A / A.sum(dim=-1, keepdim=True)


@mistake(
    of=averaging_matrix,
    zh="第 0 行不为零的数多了一个：它已经在看下一个位置了。",
    en="Row 0 has one non-zero entry too many: it already looks at the next position.",
)
def next_position_included(T):
    A = torch.ones(T, T).tril(1)
    return A / A.sum(dim=-1, keepdim=True)


@alternative(of=averaging_matrix)
def row_by_row(T):
    A = torch.zeros(T, T)
    for t in range(T):
        A[t, : t + 1] = 1 / (t + 1)
    return A


@alternative(of=averaging_matrix)
def softmax_of_zeros(T):
    return torch.full((T, T), float("-inf")).triu(1).softmax(dim=-1)


@alternative(of=averaging_matrix)
def counted_rows(T):
    return torch.tril(torch.ones(T, T)) / torch.arange(1, T + 1).unsqueeze(1)


# ---------------------------------------------------------------- prefix_mean


@exercise
def prefix_mean(X):
    T = X.shape[1]
    A = torch.ones(T, T, dtype=X.dtype).tril()  # (T, T)
    A = A / A.sum(dim=-1, keepdim=True)  # (T, T), every row adds up to 1
    return A @ X  # (T, T) @ (B, T, C) -> (B, T, C)


@mistake(
    of=prefix_mean,
    zh="改动一条序列，别的序列的结果也跟着变了：广播是让每条序列都用同一个 A，不是跨序列平均。",
    en="Change one sequence and the others change too: broadcasting reuses A, it does not average over the batch.",
)
def batch_averaged(X):
    A = averaging_matrix(X.shape[1]).to(X.dtype)
    return (A @ X).mean(dim=0, keepdim=True).expand_as(X).clone()


@mistake(
    of=prefix_mean,
    zh="只有 T 等于 C 时才乘得起来：A 应当作用在位置这根轴上，想想它该站在 X 的哪一边。",
    en="The product only exists when T equals C: A has to act on the position axis. On which side of X does it stand?",
)
def matrix_on_the_right(X):
    T = X.shape[1]
    A = torch.ones(T, T, dtype=X.dtype).tril()
    return X @ (A / A.sum(dim=-1, keepdim=True))


@mistake(
    of=prefix_mean,
    zh="只有 B 等于 T 时才算得出来：X 的哪一维是位置？",
    en="It only works when B equals T: which dimension of X counts the positions?",
)
def length_from_the_batch_axis(X):
    T = X.shape[0]
    A = torch.ones(T, T, dtype=X.dtype).tril()
    return (A / A.sum(dim=-1, keepdim=True)) @ X


@mistake(
    of=prefix_mean,
    zh="行与列对调了：现在是后面的位置把信息给了前面的位置。",
    en="Rows and columns are swapped: now the later positions provide for the earlier ones.",
)
def matrix_transposed(X):
    T = X.shape[1]
    A = torch.ones(T, T, dtype=X.dtype).tril()
    return (A / A.sum(dim=-1, keepdim=True)).T @ X


@mistake(
    of=prefix_mean,
    zh="结果和正确值只差大约 1e-8：X 是 float64，而你的权重（例如 1/3）曾经是 float32。",
    en="You are off by about 1e-8: X is float64, but your weights (1/3, say) were float32 at some point.",
)
def weights_rounded_to_float32(X):
    return averaging_matrix(X.shape[1]).to(X.dtype) @ X


@mistake(
    of=prefix_mean,
    zh="这是累加：每一行还没有除以它加了多少项。",
    en="This is a running sum: each row still has to be divided by the number of its terms.",
)
def batched_running_sum(X):
    return X.cumsum(dim=1)


@mistake(
    of=prefix_mean,
    zh="只有最后一个位置是对的：每个位置的除数应当是它自己看到的项数。",
    en="Only the last position is right: each position divides by the number of terms it sees itself.",
)
def batched_sum_over_T(X):
    return X.cumsum(dim=1) / X.shape[1]


@mistake(
    of=prefix_mean,
    zh="所有位置的结果都相同：它们都用到了整条序列，包括未来。",
    en="All positions came out the same: each used the whole sequence, the future included.",
)
def batched_whole_mean(X):
    return X.mean(dim=1, keepdim=True).expand_as(X).clone()


@mistake(
    of=prefix_mean,
    zh="你沿 batch 轴做了累加平均：第 0 条序列没有变，后面的序列混进了前面的序列。",
    en="You averaged along the batch axis: sequence 0 is unchanged, later sequences contain the earlier ones.",
)
def mean_along_the_batch(X):
    return X.cumsum(dim=0) / torch.arange(1, X.shape[0] + 1, dtype=X.dtype)[:, None, None]


@mistake(
    of=prefix_mean,
    zh="你沿特征轴做了累加平均：第 0 个特征没有变，后面的特征混进了前面的特征。",
    en="You averaged along the feature axis: feature 0 is unchanged, later features contain the earlier ones.",
)
def mean_along_the_features(X):
    return X.cumsum(dim=2) / torch.arange(1, X.shape[2] + 1, dtype=X.dtype)


@mistake(
    of=prefix_mean,
    zh="数值对，可是原地运算改掉了调用者的 X。",
    en="The numbers are right, but working in place changed the caller's X.",
)
def batched_in_place(X):
    return X.cumsum_(dim=1).div_(torch.arange(1, X.shape[1] + 1, dtype=X.dtype)[:, None])


@alternative(of=prefix_mean)
def cumsum_over_counts(X):
    counts = torch.arange(1, X.shape[1] + 1)  # (T,)
    return X.cumsum(dim=1) / counts[:, None]


@alternative(of=prefix_mean)
def einsum_with_weights(X):
    T = X.shape[1]
    A = torch.tril(X.new_ones(T, T)) / torch.arange(1, T + 1, dtype=X.dtype)[:, None]
    return torch.einsum("tj,bjc->btc", A, X)


@alternative(of=prefix_mean)
def uniform_causal_attention(X):
    nothing = torch.zeros_like(X)
    return F.scaled_dot_product_attention(nothing, nothing, X, is_causal=True)


@alternative(of=prefix_mean)
def loop_over_the_batch(X):
    return torch.stack([prefix_mean_loop(sequence) for sequence in X])


# ---------------------------------------------------------------- causal_mask


@exercise
def causal_mask(T):
    return torch.ones(T, T, dtype=torch.bool).tril()  # (T, T)


@mistake(
    of=causal_mask,
    zh="第 0 行一个 True 也没有，之后的 softmax 会得到 NaN：当前位置能不能看自己？",
    en="Row 0 has no True at all, so softmax will give NaN later: may a position see itself?",
)
def diagonal_excluded(T):
    return torch.ones(T, T, dtype=torch.bool).tril(-1)


@mistake(
    of=causal_mask,
    zh="第 0 行有两个 True：它偷看了下一个位置。",
    en="Row 0 has two entries that are True: it peeks one step ahead.",
)
def peeks_one_step(T):
    return torch.ones(T, T, dtype=torch.bool).tril(1)


@mistake(
    of=causal_mask,
    zh="正好反了：这里约定 True 表示允许看，你标出的是要挡住的位置。",
    en="Exactly the opposite: here True means allowed, and you marked what has to be blocked.",
)
def true_means_blocked(T):
    return torch.ones(T, T, dtype=torch.bool).triu(1)


@mistake(
    of=causal_mask,
    zh="行与列对调了：行是接收位置，第 0 行只能看到自己。",
    en="Rows and columns are swapped: rows receive, and row 0 sees nothing but itself.",
)
def future_only(T):
    return torch.ones(T, T, dtype=torch.bool).triu()


@mistake(
    of=causal_mask,
    zh="数值对，类型不对：之后要写 ~mask，它需要布尔型。",
    en="The right values in the wrong type: ~mask, which comes later, needs booleans.",
)
def zeros_and_ones(T):
    return torch.ones(T, T).tril()


@mistake(
    of=causal_mask,
    zh="处处是 True，等于没有遮罩。",
    en="True everywhere: that is no mask at all.",
)
def everything_allowed(T):
    return torch.ones(T, T, dtype=torch.bool)


@mistake(
    of=causal_mask,
    zh="只剩下对角线：过去的位置也应当允许。",
    en="Only the diagonal is left: the past is allowed as well.",
)
def only_itself(T):
    return torch.eye(T, dtype=torch.bool)


@alternative(of=causal_mask)
def by_comparing_indices(T):
    t = torch.arange(T)
    return t[:, None] >= t  # (T, T)


@alternative(of=causal_mask)
def by_inverting_the_future(T):
    return ~torch.triu(torch.ones(T, T), diagonal=1).bool()


@alternative(of=causal_mask)
def from_nested_lists(T):
    return torch.tensor([[j <= t for j in range(T)] for t in range(T)])


# ---------------------------------------------------------------- masked_softmax


@exercise
def masked_softmax(scores, allowed):
    scores = scores.masked_fill(~allowed, float("-inf"))  # (..., T, T)
    return scores.softmax(dim=-1)  # (..., T, T), every row adds up to 1


@mistake(
    of=masked_softmax,
    zh="有些行的权重加起来小于 1：归一化的时候，被遮住的位置还在分母里。先后顺序对吗？",
    en="Some rows add up to less than 1: blocked positions were still in the denominator. Check the order of steps.",
)
def mask_after_softmax(scores, allowed):
    return scores.softmax(dim=-1) * allowed


@mistake(
    of=masked_softmax,
    zh="被遮住的位置还有权重：0 的指数是多少？换一个取指数后真正变成 0 的数。",
    en="Blocked positions still get weight: what is the exponential of 0? Use a score whose exponential is really 0.",
)
def blocked_scores_set_to_zero(scores, allowed):
    return scores.masked_fill(~allowed, 0.0).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="四维张量里第 1 维是头，三维里是接收位置：来源在哪一维？从后面数，就不怕前面多几根轴。",
    en="Dimension 1 is the head in 4-D and the receiver in 3-D: where are the sources? Counting from the end is safer.",
)
def softmax_over_dim_one(scores, allowed):
    return scores.masked_fill(~allowed, float("-inf")).softmax(dim=1)


@mistake(
    of=masked_softmax,
    zh="你在最前面的一维上归一化了：前面有 batch 时，不同的序列就混到了一起。",
    en="You normalised over the first dimension: with a batch in front, sequences get mixed.",
)
def softmax_over_dim_zero(scores, allowed):
    return scores.masked_fill(~allowed, float("-inf")).softmax(dim=0)


@mistake(
    of=masked_softmax,
    zh="加起来是 1 的是列：每个接收位置（行）应当在它的各个来源之间分配权重。",
    en="It is the columns that add up to 1: every receiver (row) shares its weight among its sources.",
)
def softmax_over_receivers(scores, allowed):
    return scores.masked_fill(~allowed, float("-inf")).softmax(dim=-2)


@mistake(
    of=masked_softmax,
    zh="被遮住的位置还剩下大约 1e-9 的权重：泄漏很小，但不是 0。",
    en="Blocked positions keep a weight of about 1e-9: a small leak, but not zero.",
)
def weak_fill(scores, allowed):
    return scores.masked_fill(~allowed, -20.0).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="权重对，可是名字以下划线结尾的方法会原地修改：调用者的分数被你改掉了。",
    en="The weights are right, but methods ending in an underscore work in place: the caller's scores have changed.",
)
def caller_overwritten(scores, allowed):
    return scores.masked_fill_(~allowed, float("-inf")).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="你没有用到传进来的 allowed：换一张不是下三角的遮罩，结果就不对了。",
    en="You did not use the allowed that was passed in: with a mask that is not lower triangular the result is wrong.",
)
def always_causal(scores, allowed):
    return scores.masked_fill(~torch.ones_like(allowed).tril(), float("-inf")).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="留下的和遮住的正好反了：allowed 里的 True 表示允许。",
    en="What is kept and what is blocked are swapped: True in allowed means allowed.",
)
def allowed_blocked(scores, allowed):
    return scores.masked_fill(allowed, float("-inf")).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="被遮住的位置照样拿到了权重：allowed 还没有起作用。",
    en="Blocked positions get their weight as if nothing had happened: allowed has no effect yet.",
)
def mask_forgotten(scores, allowed):
    return scores.softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="遮罩的行与列对调了：allowed[t, j] 说的是接收位置 t 能不能看来源 j。",
    en="The mask's rows and columns are swapped: allowed[t, j] says whether receiver t may see source j.",
)
def mask_transposed(scores, allowed):
    return scores.masked_fill(~allowed.T, float("-inf")).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="分数恰好是 0 的位置也被当成遮住的了：0 是一个普通的分数。",
    en="Scores that happen to be 0 were taken for blocked: 0 is a score like any other.",
)
def zero_taken_for_blocked(scores, allowed):
    scores = scores * allowed
    return scores.masked_fill(scores == 0, float("-inf")).softmax(dim=-1)


@mistake(
    of=masked_softmax,
    zh="分数在 1000 左右时，指数会溢出成无穷，在 -1000 左右时全变成 0，于是得到 NaN。一行分数整体平移，权重会变吗？",
    en="Near 1000 exponentials overflow, near -1000 they vanish: NaN. Do weights change when a whole row is shifted?",
)
def bare_exponentials(scores, allowed):
    e = scores.exp() * allowed
    return e / e.sum(dim=-1, keepdim=True)


@alternative(of=masked_softmax)
def with_additive_mask(scores, allowed):
    M = torch.zeros(allowed.shape, dtype=scores.dtype).masked_fill(~allowed, float("-inf"))  # (T, T)
    return F.softmax(scores + M, dim=-1)


@alternative(of=masked_softmax)
def with_logsumexp(scores, allowed):
    scores = torch.where(allowed, scores, float("-inf"))
    return (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()


@alternative(of=masked_softmax)
def with_large_negative_fill(scores, allowed):
    return scores.masked_fill(allowed == 0, -1e9).softmax(dim=-1)


@alternative(of=masked_softmax)
def renormalised_afterwards(scores, allowed):
    weights = scores.softmax(dim=-1) * allowed  # the chapter: more work than needed, and the same result
    return weights / weights.sum(dim=-1, keepdim=True)


@alternative(of=masked_softmax)
def with_float64_inside(scores, allowed):
    return scores.double().masked_fill(~allowed, float("-inf")).softmax(dim=-1).to(scores.dtype)


# ---------------------------------------------------------------- late_mask_row_sums


@exercise
def late_mask_row_sums(scores):
    T = scores.shape[-1]
    weights = scores.softmax(dim=-1)  # (..., T, T), the future is still in the denominator
    weights = weights.masked_fill(~causal_mask(T), 0.0)  # (..., T, T)
    return weights.sum(dim=-1)  # (..., T)


@mistake(
    of=late_mask_row_sums,
    zh="处处是 1：这是先遮罩（或者之后重新归一化）的结果。题目要看的是晚了一步的遮罩会少掉多少。",
    en="1 everywhere: masking first (or renormalising) gives that. The task asks what a mask that comes late loses.",
)
def masked_in_time(scores):
    return masked_softmax(scores, causal_mask(scores.shape[-1])).sum(dim=-1)


@mistake(
    of=late_mask_row_sums,
    zh="最后一行是 0 而不是 1：你加的是丢掉的部分，不是留下的部分。",
    en="The last row is 0 instead of 1: you added up what was thrown away, not what is left.",
)
def share_of_the_future(scores):
    return scores.softmax(dim=-1).triu(1).sum(dim=-1)


@mistake(
    of=late_mask_row_sums,
    zh="你求的是每一列的和：行是接收位置，求和应当跨过它的来源。",
    en="You summed each column: rows are receivers, and a row's sum runs over its sources.",
)
def column_sums(scores):
    return scores.softmax(dim=-1).tril().sum(dim=-2)


@mistake(
    of=late_mask_row_sums,
    zh="最后一行不是 1：softmax 应当沿来源（最后一维）归一化。",
    en="The last row is not 1: softmax should normalise over the sources, the last dimension.",
)
def normalised_over_receivers(scores):
    return scores.softmax(dim=-2).tril().sum(dim=-1)


@mistake(
    of=late_mask_row_sums,
    zh="写死的 dim=1 只在二维时碰巧是来源：前面多一根轴，它就不是了。",
    en="A fixed dim=1 is the source axis in 2-D only: with one more axis in front it is another one.",
)
def normalised_over_dim_one(scores):
    return scores.softmax(dim=1).tril().sum(dim=-1)


@mistake(
    of=late_mask_row_sums,
    zh="第 0 行是 0：因果遮罩留下对角线，当前位置可以看自己。",
    en="Row 0 is 0: the causal mask keeps the diagonal, a position may see itself.",
)
def own_position_masked(scores):
    return scores.softmax(dim=-1).tril(-1).sum(dim=-1)


@mistake(
    of=late_mask_row_sums,
    zh="遮罩放行了下一个位置：倒数第二行就已经是 1 了，应当只有最后一行是 1。",
    en="The mask lets the next position through: the last but one row is 1 already, and only the last should be.",
)
def next_position_kept(scores):
    return scores.softmax(dim=-1).tril(1).sum(dim=-1)


@mistake(
    of=late_mask_row_sums,
    zh="分数在 ±1000 左右时得到了 NaN：直接取指数会溢出，先用 softmax 再遮罩。",
    en="Near ±1000 you get NaN: bare exponentials overflow. Use softmax, then mask.",
)
def bare_exponential_sums(scores):
    e = scores.exp()
    return e.tril().sum(dim=-1) / e.sum(dim=-1)


@alternative(of=late_mask_row_sums)
def diagonal_of_the_running_sum(scores):
    return scores.softmax(dim=-1).cumsum(dim=-1).diagonal(dim1=-2, dim2=-1)


@alternative(of=late_mask_row_sums)
def ratio_of_logsumexps(scores):
    past = torch.where(causal_mask(scores.shape[-1]), scores, float("-inf"))
    return (past.logsumexp(dim=-1) - scores.logsumexp(dim=-1)).exp()


@alternative(of=late_mask_row_sums)
def einsum_with_the_mask(scores):
    T = scores.shape[-1]
    return torch.einsum("...tj,tj->...t", scores.softmax(-1), torch.ones(T, T, dtype=scores.dtype).tril())


# ---------------------------------------------------------------- axis_examples


@exercise
def axis_examples():
    row = torch.arange(3, dtype=torch.float64)  # (3,)
    differ = row.repeat(1, 3, 1)  # (1, 3, 3), all rows alike
    # Every row and every column of agree holds the same three scores, so every softmax divides by the same sum.
    agree = torch.stack([row, row.roll(1), row.roll(2)])[None]  # (1, 3, 3)
    return differ, agree


@mistake(
    of=axis_examples,
    zh="两个张量的顺序反了：先返回结果不同的那个，再返回结果相同的那个。",
    en="The two tensors are in the wrong order: first the one where the results differ, then the one where they agree.",
)
def examples_swapped():
    differ, agree = axis_examples()
    return agree, differ


@mistake(
    of=axis_examples,
    zh="第二个张量的分数全都相同，两种 softmax 当然都是 1/3：换一个分数有大有小的。",
    en="All scores of the second tensor are equal, so of course both give 1/3: find one whose scores vary.",
)
def constant_scores():
    return axis_examples()[0], torch.zeros(1, 3, 3, dtype=torch.float64)


@mistake(
    of=axis_examples,
    zh="对称还不够：对称只说明一种结果是另一种的转置。想想每一行、每一列的分母各是什么。",
    en="Symmetric is not enough: it only makes one result the transpose of the other. What are the denominators?",
)
def merely_symmetric():
    agree = torch.tensor([[[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]], dtype=torch.float64)
    return axis_examples()[0], agree


@mistake(
    of=axis_examples,
    zh="幻方的行和与列和都相等，可是 softmax 的分母是指数的和，不是分数的和。",
    en="In a magic square rows and columns add up alike, but softmax divides by sums of exponentials, not of scores.",
)
def magic_square():
    agree = torch.tensor([[[2.0, 7.0, 6.0], [9.0, 5.0, 1.0], [4.0, 3.0, 8.0]]], dtype=torch.float64)
    return axis_examples()[0], agree


@mistake(
    of=axis_examples,
    zh="第一个张量上两种 softmax 还差得不够多：把分数拉开一些。",
    en="On the first tensor the two softmaxes hardly differ: spread its scores further.",
)
def hardly_different():
    differ, agree = axis_examples()
    return differ / 100, agree


@alternative(of=axis_examples)
def diagonal_scores():
    differ = torch.zeros(1, 3, 3, dtype=torch.float64)
    differ[0, :, 0] = 5.0
    return differ, torch.eye(3, dtype=torch.float64)[None]


@alternative(of=axis_examples)
def log_of_a_doubly_stochastic_matrix():
    P = torch.tensor([[0.1, 0.6, 0.3], [0.6, 0.2, 0.2], [0.3, 0.2, 0.5]], dtype=torch.float64)  # (3, 3)
    return torch.arange(9, dtype=torch.float64).view(1, 3, 3), P.log()[None]


# ---------------------------------------------------------------- attend_row


@exercise
def attend_row(scores, values):
    weights = scores.softmax(dim=0)  # (n,)
    return weights, weights @ values  # (n,) and () or (d,)


@mistake(
    of=attend_row,
    zh="分数全部加上同一个数，权重不该变，你的却变了：归一化之前还缺一步。",
    en="Adding one number to all scores must not change the weights, but does: a step before normalising is missing.",
)
def scores_over_their_sum(scores, values):
    weights = scores / scores.sum()
    return weights, weights @ values


@mistake(
    of=attend_row,
    zh="权重的比例不对：两个分数相差 log 2 时，权重应当正好差一倍。看看指数的底。",
    en="The ratios are off: scores that differ by log 2 should give weights that differ twofold. Look at the base.",
)
def powers_of_two(scores, values):
    weights = 2**scores / (2**scores).sum()
    return weights, weights @ values


@mistake(
    of=attend_row,
    zh="权重加起来不是 1：取了指数之后，还没有除以总和。",
    en="The weights do not add up to 1: after exponentiating they still have to be divided by their sum.",
)
def exponentials_only(scores, values):
    weights = scores.exp()
    return weights, weights @ values


@mistake(
    of=attend_row,
    zh="只有一个来源拿到了权重：软注意力会用到每一个来源。",
    en="One source got all the weight: soft attention uses every source.",
)
def winner_takes_all(scores, values):
    weights = F.one_hot(scores.argmax(), len(scores)).to(scores.dtype)
    return weights, weights @ values


@mistake(
    of=attend_row,
    zh="每个分数各自变成了 0 到 1 之间的数，加起来却不是 1：来源之间要分同一份权重。",
    en="Each score became a number from 0 to 1 on its own, but together they should add up to 1.",
)
def sigmoid_gates(scores, values):
    weights = scores.sigmoid()
    return weights, weights @ values


@mistake(
    of=attend_row,
    zh="权重对，输出却没有用到它们：输出是各个 value 的加权和。",
    en="The weights are right but the output does not use them: it is the weighted sum of the values.",
)
def plain_mean_of_values(scores, values):
    return scores.softmax(dim=0), values.mean(dim=0)


@mistake(
    of=attend_row,
    zh="每个来源各自乘上了权重，但还没有加到一起：这个位置只得到一个输出。",
    en="Each source was multiplied by its weight but not added up: a position receives one output.",
)
def not_summed(scores, values):
    weights = scores.softmax(dim=0)
    return weights, (weights * values.movedim(0, -1)).movedim(-1, 0)


@mistake(
    of=attend_row,
    zh="每个来源只有一个数时对；来源是 d 维向量时，输出应当还是 d 维：求和应当只跨过来源。",
    en="Right for one number per source; for d-vectors the output has d numbers too: sum over the sources only.",
)
def features_summed_too(scores, values):
    weights = scores.softmax(dim=0)
    return weights, (weights @ values).sum()


@mistake(
    of=attend_row,
    zh="返回的顺序是先权重、后输出。",
    en="Return the weights first, then the output.",
)
def output_first(scores, values):
    weights = scores.softmax(dim=0)
    return weights @ values, weights


@mistake(
    of=attend_row,
    zh="分数在 ±1000 左右时得到了 NaN：权重只取决于分数之差，取指数之前可以先减去一个数。",
    en="Near ±1000 you get NaN. Weights depend on differences of scores only: use that before exponentiating.",
)
def overflowing_exponentials(scores, values):
    weights = scores.exp() / scores.exp().sum()
    return weights, weights @ values


@alternative(of=attend_row)
def shifted_exponentials(scores, values):
    e = (scores - scores.max()).exp()
    weights = e / e.sum()
    return weights, torch.einsum("n,n...->...", weights, values)


@alternative(of=attend_row)
def from_log_weights(scores, values):
    weights = F.log_softmax(scores, dim=-1).exp()
    return weights, (weights * values.movedim(0, -1)).sum(dim=-1)
