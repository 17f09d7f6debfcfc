"""Q, K, V and one head (sections 18.3 and 18.4): references, named mistakes, valid alternatives."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.exercises import alternative, exercise, mistake

# --- project_qkv -----------------------------------------------------------------------------------------------------


@exercise
def project_qkv(X, W_Q, W_K, W_V):
    Q = X @ W_Q  # (B, T, C) @ (C, d) -> (B, T, d)
    K = X @ W_K  # (B, T, d)
    V = X @ W_V  # (B, T, d)
    return Q, K, V


@mistake(
    of=project_qkv,
    zh="数学记号里 W 的形状是 (C, d)，X 的最后一维是 C。看看相乘的两个维度各是什么，W 需要转置吗？",
    en="In the mathematical notation W is (C, d) and the last axis of X is C. Which two axes meet in your product, "
    "and does W need a transpose at all?",
)
def weights_transposed(X, W_Q, W_K, W_V):
    return X @ W_Q.T, X @ W_K.T, X @ W_V.T


@mistake(
    of=project_qkv,
    zh="有两个结果用了同一个矩阵。三套投影各有各的矩阵，逐个核对。",
    en="Two of the results come from the same matrix. Each projection has a matrix of its own: check them one by one.",
)
def keys_from_query_matrix(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_Q, X @ W_V


@mistake(
    of=project_qkv,
    zh="value 和 key 用了同一个矩阵。被汇总的内容有自己的投影。",
    en="The value and the key come from the same matrix. What gets aggregated has a projection of its own.",
)
def values_from_key_matrix(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_K


@mistake(
    of=project_qkv,
    zh="三个结果本身没错，返回的顺序不对：约定是 Q、K、V。",
    en="The three results are fine, their order is not: the agreement is Q, K, V.",
)
def keys_returned_first(X, W_Q, W_K, W_V):
    return X @ W_K, X @ W_Q, X @ W_V


@mistake(
    of=project_qkv,
    zh="返回的 V 就是 X 本身。注意力汇总的不是原始输入，而是它的 value 投影。",
    en="Your V is X itself. Attention does not aggregate the raw input but its value projection.",
)
def values_not_projected(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X


@mistake(
    of=project_qkv,
    zh="Q 多除了一个数。这一步只做投影，缩放留到算分数时。",
    en="Q has been divided by something. This step only projects; scaling belongs to the scores.",
)
def queries_scaled_too_early(X, W_Q, W_K, W_V):
    return X @ W_Q / W_Q.shape[1] ** 0.5, X @ W_K, X @ W_V


@alternative(of=project_qkv)
def project_by_einsum(X, W_Q, W_K, W_V):
    return tuple(torch.einsum("btc,cd->btd", X, W) for W in (W_Q, W_K, W_V))


@alternative(of=project_qkv)
def project_by_one_product(X, W_Q, W_K, W_V):
    return (X @ torch.cat([W_Q, W_K, W_V], dim=1)).chunk(3, dim=-1)  # (B, T, 3d) -> three (B, T, d)


@alternative(of=project_qkv)
def project_by_stacking(X, W_Q, W_K, W_V):
    return torch.stack([X @ W for W in (W_Q, W_K, W_V)])  # Q, K, V = … works with it, too


@alternative(of=project_qkv)
def project_by_linear(X, W_Q, W_K, W_V):
    return [F.linear(X, W.T) for W in (W_Q, W_K, W_V)]


# --- linear_from_math ------------------------------------------------------------------------------------------------


@exercise
def linear_from_math(W):
    C, d = W.shape
    layer = nn.Linear(C, d, bias=False, dtype=W.dtype)
    with torch.no_grad():
        layer.weight.copy_(W.T)  # stored as (d, C)
    return layer


@mistake(
    of=linear_from_math,
    zh="方阵时看不出错，换个不是方阵的 W 就装不进去了。打印 layer.weight.shape，再和 W.shape 比一比。",
    en="A square W hides it; one that is not square does not fit. "
    "Print layer.weight.shape and compare it with W.shape.",
)
def copied_untransposed(W):
    C, d = W.shape
    layer = nn.Linear(C, d, bias=False, dtype=W.dtype)
    with torch.no_grad():
        layer.weight.copy_(W)
    return layer


@mistake(
    of=linear_from_math,
    zh="nn.Linear 的两个参数依次是输入维数和输出维数。X 的最后一维是 C，它该是哪一个？",
    en="nn.Linear takes the input size first, then the output size. The last axis of X is C: which of the two is it?",
)
def sizes_swapped(W):
    C, d = W.shape
    layer = nn.Linear(d, C, bias=False, dtype=W.dtype)
    with torch.no_grad():
        layer.weight.copy_(W)
    return layer


@mistake(
    of=linear_from_math,
    zh="这一层还多加了一个向量：nn.Linear 默认带偏置，而 XW 里没有。",
    en="The layer adds one more vector: nn.Linear has a bias unless told otherwise, and XW has none.",
)
def bias_left_on(W):
    C, d = W.shape
    layer = nn.Linear(C, d, dtype=W.dtype)
    with torch.no_grad():
        layer.weight.copy_(W.T)
    return layer


@mistake(
    of=linear_from_math,
    zh="偏置设成零，现在的输出是对的，但它仍是一个会被训练的参数。题目要的是没有偏置。",
    en="A bias of zeros gives the right output today, but it is still a parameter that training will move. "
    "The task asks for none.",
)
def bias_set_to_zero(W):
    C, d = W.shape
    layer = nn.Linear(C, d, dtype=W.dtype)
    with torch.no_grad():
        layer.weight.copy_(W.T)
        layer.bias.zero_()
    return layer


@mistake(
    of=linear_from_math,
    zh="这一层的大小对了，权重却还是随机初始化的数。W 用在哪里了？",
    en="The layer has the right size, but its weight still holds the random initial numbers. Where did W go?",
)
def weight_left_random(W):
    C, d = W.shape
    return nn.Linear(C, d, bias=False, dtype=W.dtype)


@mistake(
    of=linear_from_math,
    zh="nn.Linear 默认用 float32。W 是什么 dtype，这一层也该是什么 dtype。",
    en="nn.Linear is float32 unless told otherwise. The layer should have the dtype that W has.",
)
def dtype_left_at_default(W):
    C, d = W.shape
    layer = nn.Linear(C, d, bias=False)
    with torch.no_grad():
        layer.weight.copy_(W.T)
    return layer


@alternative(of=linear_from_math)
def with_a_new_parameter(W):
    layer = nn.Linear(*W.shape, bias=False)
    layer.weight = nn.Parameter(W.T.clone())
    return layer


@alternative(of=linear_from_math)
def with_load_state_dict(W):
    layer = nn.Linear(W.size(0), W.size(1), bias=False).to(W.dtype)
    layer.load_state_dict({"weight": W.t()})
    return layer


@alternative(of=linear_from_math)
def with_assigned_data(W):
    layer = nn.Linear(W.shape[0], W.shape[1], bias=False)
    layer.weight.data = W.T.contiguous()
    return layer


class _MathLinear(nn.Linear):
    def __init__(self, W):
        super().__init__(W.shape[0], W.shape[1], bias=False, dtype=W.dtype)
        with torch.no_grad():
            self.weight.copy_(W.T)


@alternative(of=linear_from_math)
def of_a_class_of_its_own(W):
    return _MathLinear(W)


# --- scaled_scores ---------------------------------------------------------------------------------------------------


@exercise
def scaled_scores(Q, K):
    d = Q.shape[-1]
    return Q @ K.transpose(-2, -1) / math.sqrt(d)  # (..., T_q, d) @ (..., d, T_k) -> (..., T_q, T_k)


@mistake(
    of=scaled_scores,
    zh=".T 会把所有轴倒过来，连 batch 也动了。这里只需要交换最后两个轴。",
    en=".T reverses every axis, the batch included. Only the last two axes should trade places here.",
)
def every_axis_reversed(Q, K):
    return Q @ K.permute(*reversed(range(K.ndim))) / Q.shape[-1] ** 0.5


@mistake(
    of=scaled_scores,
    zh="写死的 1 和 2 只在三维时是最后两轴；多了一个头轴就换错了。从后往前数轴。",
    en="1 and 2 are the last two axes of a 3-D tensor only; with a head axis they are others. "
    "Count the axes from the end.",
)
def axes_counted_from_the_front(Q, K):
    return Q @ K.transpose(1, 2) / Q.shape[-1] ** 0.5


@mistake(
    of=scaled_scores,
    zh="分数没有缩放。d 个方差为 1 的乘积相加，和的标准差是多少？",
    en="The scores are not scaled. If d products of variance 1 are added up, "
    "what is the standard deviation of the sum?",
)
def scores_not_scaled(Q, K):
    return Q @ K.transpose(-2, -1)


@mistake(
    of=scaled_scores,
    zh="除得太多了：方差是 d，而要除的是标准差。",
    en="That divides by too much: d is the variance, and it is the standard deviation you divide by.",
)
def divided_by_d(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-1]


@mistake(
    of=scaled_scores,
    zh="缩放方向反了：头越宽，分数应当被压得越多，而不是放得越大。",
    en="The scaling goes the wrong way: the wider the head, the more the scores should shrink, not grow.",
)
def multiplied_by_sqrt_d(Q, K):
    return Q @ K.transpose(-2, -1) * Q.shape[-1] ** 0.5


@mistake(
    of=scaled_scores,
    zh="缩放用的是序列长度。点积是沿哪个轴求和的？就用那个轴的长度。",
    en="You scaled by the sequence length. Along which axis does the dot product sum? Its size is the one that counts.",
)
def scaled_by_length(Q, K):
    return Q @ K.transpose(-2, -1) / K.shape[-2] ** 0.5


@mistake(
    of=scaled_scores,
    zh="行和列对调了：第 t 行应当属于第 t 个 query。",
    en="Rows and columns are swapped: row t should belong to query t.",
)
def rows_are_keys(Q, K):
    return K @ Q.transpose(-2, -1) / Q.shape[-1] ** 0.5


@mistake(
    of=scaled_scores,
    zh="数是对的，但调用者的张量被改了。带 = 的运算（例如 /=）会原地改写。",
    en="The numbers are right, but the caller's tensor was changed. Operators such as /= write in place.",
)
def queries_scaled_in_place(Q, K):
    Q /= Q.shape[-1] ** 0.5
    return Q @ K.transpose(-2, -1)


@mistake(
    of=scaled_scores,
    zh="这已经是权重了：这一步只要分数，softmax 在后面。",
    en="These are weights already: this step returns scores, softmax comes later.",
)
def softmax_applied_already(Q, K):
    return (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).softmax(-1)


@alternative(of=scaled_scores)
def scores_by_einsum(Q, K):
    return torch.einsum("...td,...sd->...ts", Q, K) * Q.shape[-1] ** -0.5


@alternative(of=scaled_scores)
def queries_scaled_first(Q, K):
    return torch.matmul(Q / math.sqrt(Q.size(-1)), K.mT)


@alternative(of=scaled_scores)
def scores_by_broadcasting(Q, K):
    return (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1) / Q.shape[-1] ** 0.5  # (..., T_q, T_k, d) -> (..., T_q, T_k)


# --- causal_attention ------------------------------------------------------------------------------------------------


@exercise
def causal_attention(Q, K, V):
    T, d = Q.shape[-2:]
    S = Q @ K.transpose(-2, -1) / math.sqrt(d)  # (..., T, T)
    allowed = torch.ones(T, T, dtype=torch.bool, device=Q.device).tril()  # (T, T)
    A = S.masked_fill(~allowed, float("-inf")).softmax(dim=-1)  # (..., T, T)
    return A @ V, A  # (..., T, d_v), (..., T, T)


def _scores(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5


def _hidden(S, diagonal=0):
    """True where position t must not look, (T, T)."""
    return ~torch.ones(S.shape[-2:], dtype=torch.bool).tril(diagonal)


def _weights(Q, K):
    """The right weights, for mistakes that come after them, (..., T, T)."""
    S = _scores(Q, K)
    return S.masked_fill(_hidden(S), -torch.inf).softmax(-1)


@mistake(
    of=causal_attention,
    zh="没有遮罩：每个位置都看到了未来。把 A 打印出来，看右上角。",
    en="There is no mask: every position sees the future. Print A and look at its upper right.",
)
def unmasked(Q, K, V):
    A = _scores(Q, K).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="每一行都多看了一个位置。从第 0 行数起：它可以看几个位置？",
    en="Every row sees one position too many. Start at row 0: how many positions may it see?",
)
def peeks_one_ahead(Q, K, V):
    S = _scores(Q, K)
    A = S.masked_fill(_hidden(S, 1), -torch.inf).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="连对角线也遮住了：第 0 行一个可看的位置都没有，softmax 就成了 NaN。",
    en="The diagonal is masked too: row 0 has nothing left to look at, and its softmax is NaN.",
)
def diagonal_excluded(Q, K, V):
    S = _scores(Q, K)
    A = S.masked_fill(_hidden(S, -1), -torch.inf).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="归一化沿的是接收位置这一轴，所以每行的和不是 1。每一行要对它的来源归一化。",
    en="You normalise over the receivers, so the rows do not add up to 1. Each row is normalised over its sources.",
)
def normalised_over_queries(Q, K, V):
    S = _scores(Q, K)
    A = S.masked_fill(_hidden(S), -torch.inf).softmax(-2)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="softmax 的轴写死成了 1：三维时它是接收位置，四维时它是头。来源在最后一轴。",
    en="The softmax axis is fixed at 1: in 3-D those are the receivers, in 4-D the heads. "
    "The sources are on the last axis.",
)
def normalised_over_axis_one(Q, K, V):
    S = _scores(Q, K)
    A = S.masked_fill(_hidden(S), -torch.inf).softmax(1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="遮罩加在 softmax 之后，剩下的权重加起来不到 1。想想缩放、遮罩、softmax 谁先谁后。",
    en="The mask comes after the softmax, so what is left adds up to less than 1. "
    "In what order do scaling, mask and softmax go?",
)
def mask_after_softmax(Q, K, V):
    S = _scores(Q, K)
    A = S.softmax(-1).masked_fill(_hidden(S), 0)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="softmax 之后再遮、再除以和：未来的分数进过分母，最后几位数字里还看得出来，"
    "分数大时还会变成 0/0。遮罩换个位置，这些麻烦就都没有了。",
    en="Masking after the softmax and renormalising: the future's scores have been in the denominator, they still show "
    "in the last digits, and large scores give 0/0. In another place the mask causes none of this.",
)
def renormalised_after_mask(Q, K, V):
    S = _scores(Q, K)
    A = S.softmax(-1).masked_fill(_hidden(S), 0)
    A = A / A.sum(-1, keepdim=True)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="缩放用在了权重上，权重之和不再是 1。要缩放的是分数。",
    en="The scaling went to the weights, which no longer add up to 1. It is the scores that are scaled.",
)
def scale_after_softmax(Q, K, V):
    S = Q @ K.transpose(-2, -1)
    A = S.masked_fill(_hidden(S), -torch.inf).softmax(-1) / Q.shape[-1] ** 0.5
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="未来的分数被设成了 0，而 0 的指数是 1，不是 0。哪个数的指数才是 0？",
    en="The future's scores were set to 0, and the exponential of 0 is 1, not 0. "
    "Which number has 0 for its exponential?",
)
def masked_with_zero(Q, K, V):
    S = _scores(Q, K)
    A = S.masked_fill(_hidden(S), 0).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="未来还留着很小的权重：填进去的数不够小。权重要恰好是 0。",
    en="The future keeps a tiny weight: the number you filled in is not small enough. The weight must be exactly 0.",
)
def masked_with_minus_twenty(Q, K, V):
    S = _scores(Q, K)
    A = S.masked_fill(_hidden(S), -20.0).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="你把“分数等于 0”当成了“被遮住”。真正的分数也可能恰好是 0；遮罩要由位置决定，不由分数决定。",
    en="You take “the score is 0” for “masked”. A real score can be exactly 0 too: "
    "positions decide what is masked, not scores.",
)
def zero_taken_for_masked(Q, K, V):
    S = _scores(Q, K).tril()
    A = S.masked_fill(S == 0, -torch.inf).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="权重是对的，被加权的却是 key。汇总的内容应当来自哪里？",
    en="The weights are right, but they weight the keys. Where should the aggregated content come from?",
)
def keys_aggregated(Q, K, V):
    A = _weights(Q, K)
    return A @ K, A


@mistake(
    of=causal_attention,
    zh="加权求和时 A 被转置了。Y 的第 t 行要用 A 的哪一行（还是列）？",
    en="A was transposed for the weighted sum. Which row, or column, of A makes row t of Y?",
)
def weights_transposed_for_the_sum(Q, K, V):
    A = _weights(Q, K)
    return A.transpose(-2, -1) @ V, A


@mistake(
    of=causal_attention,
    zh="遮罩没错，但分数没有缩放：和 SDPA 的结果比一比，d 越大差得越多。",
    en="The mask is right, but the scores are not scaled: compare with SDPA, the difference grows with d.",
)
def attention_not_scaled(Q, K, V):
    S = Q @ K.transpose(-2, -1)
    A = S.masked_fill(_hidden(S), -torch.inf).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="分数除的是 d，而标准差是它的平方根。",
    en="The scores are divided by d, and the standard deviation is its square root.",
)
def attention_divided_by_d(Q, K, V):
    S = Q @ K.transpose(-2, -1) / Q.shape[-1]
    A = S.masked_fill(_hidden(S), -torch.inf).softmax(-1)
    return A @ V, A


@mistake(
    of=causal_attention,
    zh="两个结果都在，但顺序反了：先输出 Y，后权重 A。",
    en="Both results are there in the wrong order: first the output Y, then the weights A.",
)
def weights_returned_first(Q, K, V):
    A = _weights(Q, K)
    return A, A @ V


@alternative(of=causal_attention)
def attention_by_sdpa(Q, K, V):
    T = Q.size(-2)
    bias = torch.full((T, T), float("-inf"), dtype=Q.dtype).triu(1)  # (T, T), added to the scores
    A = torch.softmax(Q @ K.mT * Q.size(-1) ** -0.5 + bias, -1)  # (..., T, T)
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True), A


@alternative(of=causal_attention)
def attention_by_einsum(Q, K, V):
    t = torch.arange(Q.shape[-2])
    S = torch.einsum("...td,...sd->...ts", Q, K) / Q.shape[-1] ** 0.5
    S = torch.where(t[:, None] >= t, S, -1e9)
    A = torch.exp(S - S.logsumexp(-1, keepdim=True))
    return torch.einsum("...ts,...sv->...tv", A, V), A


@alternative(of=causal_attention)
def attention_row_by_row(Q, K, V):
    T, d = Q.shape[-2:]
    Y, A = [], []
    for t in range(T):
        past = slice(t + 1)
        a = ((K[..., past, :] * Q[..., t : t + 1, :]).sum(-1) / math.sqrt(d)).softmax(-1)  # (..., t+1)
        Y.append((a.unsqueeze(-1) * V[..., past, :]).sum(-2))  # (..., d_v)
        A.append(F.pad(a, (0, T - 1 - t)))  # (..., T)
    return torch.stack(Y, dim=-2), torch.stack(A, dim=-2)


# --- Head ------------------------------------------------------------------------------------------------------------


@exercise
class Head(nn.Module):
    def __init__(self, C, head_size, block_size, dropout=0.0):
        super().__init__()
        self.query = nn.Linear(C, head_size, bias=False)
        self.key = nn.Linear(C, head_size, bias=False)
        self.value = nn.Linear(C, head_size, bias=False)
        self.register_buffer("tril", torch.ones(block_size, block_size, dtype=torch.bool).tril())
        self.dropout = nn.Dropout(dropout)

    def forward(self, X):
        T = X.shape[1]
        q, k, v = self.query(X), self.key(X), self.value(X)  # each (B, T, d)
        S = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5  # (B, T, T)
        S = S.masked_fill(~self.tril[:T, :T], float("-inf"))
        A = self.dropout(S.softmax(dim=-1))  # (B, T, T)
        return A @ v  # (B, T, d)


class _Head(nn.Module):
    """The reference in pieces, so that each mistake below shows only what it does differently."""

    bias = False

    def __init__(self, C, head_size, block_size, dropout=0.0):
        super().__init__()
        self.query = nn.Linear(C, head_size, bias=self.bias)
        self.key = nn.Linear(C, head_size, bias=self.bias)
        self.value = nn.Linear(C, head_size, bias=self.bias)
        self.keep_mask(torch.ones(block_size, block_size, dtype=torch.bool).tril())
        self.dropout = nn.Dropout(dropout)

    def keep_mask(self, tril):
        self.register_buffer("tril", tril)

    def scores(self, q, k, X):
        return q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5

    def masked(self, S):
        T = S.shape[-1]
        return S.masked_fill(self.tril[:T, :T] == 0, float("-inf"))

    def weights(self, S):
        return self.dropout(self.masked(S).softmax(-1))

    def forward(self, X):
        q, k, v = self.query(X), self.key(X), self.value(X)
        return self.weights(self.scores(q, k, X)) @ v


@mistake(
    of=Head,
    zh="缩放用的是模型宽度 C。点积是沿头的宽度求和的；课程作者也公开更正过这一处。",
    en="You scale by the model width C. The dot product sums over the width of the head; "
    "the lecture's author published a correction on this very point.",
)
class ScaledByModelWidth(_Head):
    def scores(self, q, k, X):
        return q @ k.transpose(-2, -1) * X.shape[-1] ** -0.5


@mistake(
    of=Head,
    zh="分数没有缩放，和 SDPA 对不上。",
    en="The scores are not scaled, so the result does not match SDPA.",
)
class ScoresNotScaled(_Head):
    def scores(self, q, k, X):
        return q @ k.transpose(-2, -1)


@mistake(
    of=Head,
    zh="遮罩是 block_size 大小的，输入更短时形状就对不上。遮罩要随当前的 T 裁剪。",
    en="The mask has the size of the block, and a shorter input does not fit it. Crop the mask to the T at hand.",
)
class MaskNotCropped(_Head):
    def masked(self, S):
        return S.masked_fill(~self.tril, float("-inf"))


@mistake(
    of=Head,
    zh="没有用上遮罩：改动后面的输入，前面的输出也变了。",
    en="The mask is never used: change a later input and earlier outputs change too.",
)
class MaskNotUsed(_Head):
    def masked(self, S):
        return S


@mistake(
    of=Head,
    zh="遮罩成了 nn.Parameter：优化器会去更新它，参数个数也多了。它不需要训练，只需要跟着模型走。",
    en="The mask is an nn.Parameter: an optimiser would update it, and it adds to the parameter count. "
    "It needs no training, it only has to travel with the model.",
)
class MaskAsParameter(_Head):
    def keep_mask(self, tril):
        self.tril = nn.Parameter(tril.float())


@mistake(
    of=Head,
    zh="遮罩只是普通属性：model.to(device) 不会搬动它，state_dict 里也没有它。nn.Module 有专门存这种张量的办法。",
    en="The mask is a plain attribute: model.to(device) leaves it behind, and state_dict does not have it. "
    "nn.Module has its own way to keep such a tensor.",
)
class MaskAsPlainAttribute(_Head):
    def keep_mask(self, tril):
        self.tril = tril


@mistake(
    of=Head,
    zh="eval 模式下还在丢弃。函数 F.dropout 不知道模块处在哪种模式，除非你告诉它。",
    en="It still drops in eval mode. The function F.dropout does not know the module's mode unless you tell it.",
)
class DropsInEval(_Head):
    def weights(self, S):
        return F.dropout(self.masked(S).softmax(-1), self.dropout.p)


@mistake(
    of=Head,
    zh="训练模式下什么也没丢：dropout 参数没有用上。",
    en="Nothing is dropped in train mode: the dropout argument is not used.",
)
class NeverDrops(_Head):
    def weights(self, S):
        return self.masked(S).softmax(-1)


@mistake(
    of=Head,
    zh="dropout 加在了输出上。这里要丢的是注意力权重：丢掉一个来源，就整个丢掉。",
    en="Dropout is applied to the output. Here it acts on the attention weights: a source is dropped as a whole.",
)
class DropsOutputs(_Head):
    def forward(self, X):
        S = self.scores(self.query(X), self.key(X), X)
        return self.dropout(self.masked(S).softmax(-1) @ self.value(X))


@mistake(
    of=Head,
    zh="dropout 加在了 softmax 之前的分数上：丢掉的分数成了 0，而 0 分并不等于不看。",
    en="Dropout acts on the scores, before the softmax: a dropped score becomes 0, "
    "and a score of 0 still gets a weight.",
)
class DropsScores(_Head):
    def weights(self, S):
        return self.masked(self.dropout(S)).softmax(-1)


@mistake(
    of=Head,
    zh="一个来源一旦丢掉，所有的接收者就都看不到它了：每个权重应各自决定去留。",
    en="Once a source is dropped, no receiver sees it any more: each single weight should be dropped on its own.",
)
class DropsWholeSources(_Head):
    def weights(self, S):
        return self.masked(S).softmax(-1) * self.dropout(torch.ones_like(S[:, :1]))


@mistake(
    of=Head,
    zh="遮罩存好了，可是名字不是 tril：按名字去找它的代码就找不到。",
    en="The mask is kept, but not under the name tril: code that looks for it by name will not find it.",
)
class MaskUnderAnotherName(_Head):
    def keep_mask(self, tril):
        self.register_buffer("mask", tril)

    def masked(self, S):
        T = S.shape[-1]
        return S.masked_fill(~self.mask[:T, :T], float("-inf"))


@mistake(
    of=Head,
    zh="参数多于 3·C·d：nn.Linear 默认带偏置。",
    en="There are more than 3·C·d parameters: nn.Linear has a bias unless told otherwise.",
)
class ProjectionsWithBias(_Head):
    bias = True


@mistake(
    of=Head,
    zh="softmax 沿的是接收位置这一轴。每个接收位置要对它的来源归一化。",
    en="The softmax runs over the receivers. Each receiver is normalised over its sources.",
)
class NormalisedOverQueries(_Head):
    def weights(self, S):
        return self.dropout(self.masked(S).softmax(1))


@mistake(
    of=Head,
    zh="query 和 key 对调了：分数的行应当属于 query。",
    en="Query and key have traded places: the rows of the scores belong to the queries.",
)
class RowsAreKeys(_Head):
    def scores(self, q, k, X):
        return k @ q.transpose(-2, -1) * k.shape[-1] ** -0.5


@alternative(of=Head)
class HeadWithOneProjection(nn.Module):
    def __init__(self, C, head_size, block_size, dropout=0.0):
        super().__init__()
        self.qkv = nn.Linear(C, 3 * head_size, bias=False)
        self.p = dropout
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # each (B, T, d)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)


@alternative(of=Head)
class HeadWithMathMatrices(nn.Module):
    def __init__(self, C, head_size, block_size, dropout=0.0):
        super().__init__()
        self.W_Q = nn.Parameter(torch.randn(C, head_size) / C**0.5)
        self.W_K = nn.Parameter(torch.randn(C, head_size) / C**0.5)
        self.W_V = nn.Parameter(torch.randn(C, head_size) / C**0.5)
        self.register_buffer("tril", torch.full((block_size, block_size), float("-inf")).triu(1), persistent=False)
        self.dropout = dropout

    def forward(self, x):
        T = x.size(-2)
        scores = (x @ self.W_Q) @ (x @ self.W_K).mT / math.sqrt(self.W_Q.size(1)) + self.tril[:T, :T]  # (B, T, T)
        return F.dropout(scores.softmax(-1), self.dropout, self.training) @ (x @ self.W_V)  # (B, T, d)


# --- score_stats -----------------------------------------------------------------------------------------------------


@exercise
def score_stats(d, n, seed):
    rng = torch.Generator().manual_seed(seed)
    q = torch.randn(n, d, generator=rng)
    k = torch.randn(n, d, generator=rng)
    dots = (q * k).sum(-1)  # (n,)
    return dots.var().item(), (dots / math.sqrt(d)).var().item()


def _pairs(d, n, seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=rng), torch.randn(n, d, generator=rng)


@mistake(
    of=score_stats,
    zh="torch.rand 给的是 0 到 1 之间的均匀数：均值不是 0，方差也不是 1。",
    en="torch.rand gives uniform numbers between 0 and 1: their mean is not 0 and their variance is not 1.",
)
def uniform_components(d, n, seed):
    rng = torch.Generator().manual_seed(seed)
    dots = (torch.rand(n, d, generator=rng) * torch.rand(n, d, generator=rng)).sum(-1)
    return dots.var().item(), (dots / d**0.5).var().item()


@mistake(
    of=score_stats,
    zh="这是标准差；题目要的是方差。",
    en="This is the standard deviation; the variance was asked for.",
)
def standard_deviations(d, n, seed):
    q, k = _pairs(d, n, seed)
    dots = (q * k).sum(-1)
    return dots.std().item(), (dots / d**0.5).std().item()


@mistake(
    of=score_stats,
    zh="缩放后的方差太小了。分数除以 c，方差会除以多少？",
    en="The scaled variance is far too small. When scores are divided by c, what is their variance divided by?",
)
def scores_divided_by_d(d, n, seed):
    q, k = _pairs(d, n, seed)
    dots = (q * k).sum(-1)
    return dots.var().item(), (dots / d).var().item()


@mistake(
    of=score_stats,
    zh="你缩放的是方差，不是分数。先缩放分数，再求方差，看看有什么不同。",
    en="You scaled the variance, not the scores. Scale the scores first and then take the variance: what changes?",
)
def variance_divided_by_sqrt_d(d, n, seed):
    q, k = _pairs(d, n, seed)
    raw = (q * k).sum(-1).var().item()
    return raw, raw / d**0.5


@mistake(
    of=score_stats,
    zh="q 和 k 是同一组数，点积成了长度的平方。这里假设两者相互独立。",
    en="q and k are the same numbers, so the dot product is a squared length. "
    "The assumption is that they are independent.",
)
def queries_with_themselves(d, n, seed):
    q, _ = _pairs(d, n, seed)
    dots = (q * q).sum(-1)
    return dots.var().item(), (dots / d**0.5).var().item()


@mistake(
    of=score_stats,
    zh="seed 没有用上：同样的参数再调一次，结果应当一模一样。",
    en="The seed is not used: the same arguments should give the same result every time.",
)
def seed_ignored(d, n, seed):
    dots = (torch.randn(n, d) * torch.randn(n, d)).sum(-1)
    return dots.var().item(), (dots / d**0.5).var().item()


@mistake(
    of=score_stats,
    zh="两个方差的次序反了：先原始分数，后缩放后的分数。",
    en="The two variances are in the wrong order: first the raw scores, then the scaled ones.",
)
def scaled_returned_first(d, n, seed):
    q, k = _pairs(d, n, seed)
    dots = (q * k).sum(-1)
    return (dots / d**0.5).var().item(), dots.var().item()


@mistake(
    of=score_stats,
    zh="这是每个乘积的方差。一个分数是 d 个乘积之和：先沿特征轴求和。",
    en="This is the variance of the single products. One score is the sum of d of them: sum over the features first.",
)
def products_not_summed(d, n, seed):
    q, k = _pairs(d, n, seed)
    return (q * k).var().item(), (q * k / d**0.5).var().item()


@mistake(
    of=score_stats,
    zh="第二个数是理论值 1，不是从这批点积里算出来的。",
    en="The second number is the 1 of theory; it was not worked out from these dot products.",
)
def scaled_variance_assumed(d, n, seed):
    q, k = _pairs(d, n, seed)
    return (q * k).sum(-1).var().item(), 1.0


@mistake(
    of=score_stats,
    zh="这是所有乘积的方差乘以 d，不是点积的方差：每对 query 和 key 只有一个点积，先求和，再求方差。",
    en="This is d times the variance of all products. Each pair has one dot product: sum first, then take the variance.",
)
def all_products_pooled(d, n, seed):
    q, k = _pairs(d, n, seed)
    return d * (q * k).var().item(), (q * k).var().item()


@alternative(of=score_stats)
def stats_with_the_global_seed(d, n, seed):
    torch.manual_seed(seed)
    q, k = torch.randn(2, n, d, dtype=torch.float64)
    dots = torch.einsum("nd,nd->n", q, k)
    return dots.var(), (dots * d**-0.5).var()


@alternative(of=score_stats)
def stats_from_moments(d, n, seed):
    rng = torch.Generator().manual_seed(seed)
    q, k = torch.randn(d, n, generator=rng), torch.randn(d, n, generator=rng)
    dots = (q * k).sum(0)
    raw = (dots.square().mean() - dots.mean().square()).item()
    return raw, raw / d


# --- multi_head_scores -----------------------------------------------------------------------------------------------


@exercise
def multi_head_scores(X, Wq, Wk, H):
    B, T, C = X.shape
    head_size = C // H
    q = (X @ Wq).view(B, T, H, head_size).transpose(1, 2)  # (B, H, T, head_size)
    k = (X @ Wk).view(B, T, H, head_size).transpose(1, 2)  # (B, H, T, head_size)
    return q @ k.transpose(-2, -1) / math.sqrt(head_size)  # (B, H, T, T)


def _split(Z, H):
    B, T, C = Z.shape
    return Z.reshape(B, T, H, C // H).transpose(1, 2)  # (B, H, T, head_size)


@mistake(
    of=multi_head_scores,
    zh="缩放用了模型宽度 C。只有一个头时看不出来；每个头的点积是几项之和？",
    en="You scale by the model width C. With a single head it does not show; "
    "how many terms does one head's dot product add up?",
)
def scaled_by_model_width(X, Wq, Wk, H):
    return _split(X @ Wq, H) @ _split(X @ Wk, H).transpose(-2, -1) / X.shape[-1] ** 0.5


@mistake(
    of=multi_head_scores,
    zh="缩放用了头的个数。要的是每个头的宽度。",
    en="You scale by the number of heads. It is the width of one head that counts.",
)
def scaled_by_head_count(X, Wq, Wk, H):
    return _split(X @ Wq, H) @ _split(X @ Wk, H).transpose(-2, -1) / H**0.5


@mistake(
    of=multi_head_scores,
    zh="形状对了，内容却乱了：直接 view 成 (B, H, T, …) 会把位置和头搅在一起。先拆最后一轴，再换轴。",
    en="The shape is right and the content is scrambled: a view straight to (B, H, T, …) mixes positions and heads. "
    "Split the last axis first, then move axes.",
)
def viewed_without_transpose(X, Wq, Wk, H):
    B, T, C = X.shape
    q, k = (X @ Wq).view(B, H, T, C // H), (X @ Wk).view(B, H, T, C // H)
    return q @ k.transpose(-2, -1) / (C // H) ** 0.5


@mistake(
    of=multi_head_scores,
    zh="没有拆成多个头：结果应当有头轴，每个头一张 (T, T) 的表。",
    en="The heads were never split: the result needs a head axis, with one (T, T) table for each head.",
)
def heads_not_split(X, Wq, Wk, H):
    return (X @ Wq) @ (X @ Wk).transpose(-2, -1) / (X.shape[-1] // H) ** 0.5


@mistake(
    of=multi_head_scores,
    zh="每个头拿到的是隔着取的特征。第 h 个头该拿连续的一段列：view 时 H 和 head_size 谁在前？",
    en="Each head got every H-th feature. Head h owns one block of neighbouring columns: "
    "which comes first in the view, H or head_size?",
)
def heads_interleaved(X, Wq, Wk, H):
    B, T, C = X.shape
    q = (X @ Wq).view(B, T, C // H, H).permute(0, 3, 1, 2)
    k = (X @ Wk).view(B, T, C // H, H).permute(0, 3, 1, 2)
    return q @ k.transpose(-2, -1) / (C // H) ** 0.5


@mistake(
    of=multi_head_scores,
    zh="分数没有缩放。",
    en="The scores are not scaled.",
)
def head_scores_not_scaled(X, Wq, Wk, H):
    return _split(X @ Wq, H) @ _split(X @ Wk, H).transpose(-2, -1)


@mistake(
    of=multi_head_scores,
    zh="行和列对调了：每个头里，第 t 行属于第 t 个 query。",
    en="Rows and columns are swapped: in each head, row t belongs to query t.",
)
def head_rows_are_keys(X, Wq, Wk, H):
    return _split(X @ Wk, H) @ _split(X @ Wq, H).transpose(-2, -1) / (X.shape[-1] // H) ** 0.5


@mistake(
    of=multi_head_scores,
    zh="key 用的也是 Wq：分数成了对称的表。",
    en="The keys come from Wq as well, so every table is symmetric.",
)
def head_keys_from_query_matrix(X, Wq, Wk, H):
    q = _split(X @ Wq, H)
    return q @ q.transpose(-2, -1) / (X.shape[-1] // H) ** 0.5


@alternative(of=multi_head_scores)
def head_by_head(X, Wq, Wk, H):
    heads = [
        (X @ q) @ (X @ k).transpose(-2, -1) / math.sqrt(q.shape[1])  # (B, T, T)
        for q, k in zip(Wq.chunk(H, dim=1), Wk.chunk(H, dim=1), strict=True)
    ]
    return torch.stack(heads, dim=1)


@alternative(of=multi_head_scores)
def heads_by_einsum(X, Wq, Wk, H):
    Wq, Wk = (W.unflatten(1, (H, -1)) for W in (Wq, Wk))  # (C, H, head_size)
    q, k = torch.einsum("btc,chs->bhts", X, Wq), torch.einsum("btc,chs->bhts", X, Wk)
    return torch.einsum("bhts,bhus->bhtu", q, k) * (X.size(-1) // H) ** -0.5


# --- sharpen ---------------------------------------------------------------------------------------------------------


@exercise
def sharpen(logits, factor):
    return torch.softmax(logits * factor, dim=-1)  # (n,)


@mistake(
    of=sharpen,
    zh="放大的是权重，加起来就不是 1 了。该放大的是进入 softmax 之前的分数。",
    en="It is the weights you enlarge, and they no longer add up to 1. Enlarge what goes into the softmax.",
)
def weights_multiplied(logits, factor):
    return torch.softmax(logits, dim=-1) * factor


@mistake(
    of=sharpen,
    zh="权重取了幂，加起来不再是 1。想想 (e^z)^f 等于什么，再看少了哪一步。",
    en="The weights were raised to a power and no longer add up to 1. "
    "What is (e^z)^f, and which step is missing after it?",
)
def weights_to_a_power(logits, factor):
    return torch.softmax(logits, dim=-1) ** factor


@mistake(
    of=sharpen,
    zh="方向反了：factor 越大，分布应当越尖，而不是越平。",
    en="The direction is reversed: a larger factor should make the distribution sharper, not flatter.",
)
def logits_divided(logits, factor):
    return torch.softmax(logits / factor, dim=-1)


@mistake(
    of=sharpen,
    zh="factor 没有起作用：给所有分数加上同一个数，softmax 不会变。",
    en="The factor has no effect: adding one number to all scores leaves the softmax as it is.",
)
def factor_added(logits, factor):
    return torch.softmax(logits + factor, dim=-1)


@mistake(
    of=sharpen,
    zh="只剩下一个来源。乘 8 以后它更尖，但其余来源仍有权重。",
    en="Only one source is left. Multiplied by 8 the distribution is sharper, but the others still have some weight.",
)
def only_the_largest(logits, factor):
    return F.one_hot(logits.argmax(), len(logits)).to(logits.dtype)


@alternative(of=sharpen)
def sharpen_by_exponentials(logits, factor):
    z = logits * factor
    e = torch.exp(z - z.max())
    return e / e.sum()


@alternative(of=sharpen)
def sharpen_by_normalised_powers(logits, factor):
    p = torch.softmax(logits, dim=0) ** factor
    return p / p.sum()


@alternative(of=sharpen)
def sharpen_by_logsumexp(logits, factor):
    z = factor * logits
    return (z - z.logsumexp(-1)).exp()
