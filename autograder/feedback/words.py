"""The fixed sentences of feedback page, card and class report, in both languages."""

from __future__ import annotations

from autograder.text import Text

# Names of things
FEEDBACK = Text(zh="作业反馈", en="Feedback")
SCORE = Text(zh="得分", en="Score")
POINTS = Text(zh="分", en="points")
EXERCISES = Text(zh="各题", en="Exercises")
LANGUAGE = Text(zh="语言", en="Language")
DETAILS = Text(zh="评分记录", en="About this grading")
GRADED_ON = Text(zh="评分种子 {seed} · 用时 {seconds}", en="grading seed {seed} · took {seconds}")

# How an exercise came out
FULL = Text(zh="满分", en="full marks")
PARTIAL = Text(zh="部分得分", en="partly right")
NONE = Text(zh="未得分", en="no points yet")
UNTOUCHED = Text(zh="还没有作答", en="not answered")
WAITING = Text(zh="等待人工评分", en="waiting to be graded by hand")
ALL_PASSED = Text(zh="{n} 项检查全部通过。", en="All {n} checks passed.")
ONE_PASSED = Text(zh="检查通过。", en="The check passed.")

# Inside an exercise
MISTAKE = Text(zh="看看这里", en="Look here")
WHAT_FAILED = Text(zh="没有通过的检查", en="Checks that failed")
PASSED = Text(zh="通过的检查（{n} 项）", en="Checks that passed ({n})")
NOT_CHECKED = Text(
    zh="另有 {n} 项没有检查：要等前面的检查通过才有意义。",
    en="{n} more not checked: they only make sense once the ones before them pass.",
)
COURSE_FAULT = Text(
    zh="有 {n} 项检查本身出了问题，不影响你的分数；老师会收到通知。",
    en="{n} of the checks went wrong by their own fault. They do not count, and your instructor is told.",
)
MACHINE_FAULT = Text(
    zh="有 {n} 项检查因为评分机器的故障没有完成，会重新评分。",
    en="{n} of the checks could not be finished because the grading machine failed; they will be run again.",
)
HIDDEN_FAILURES = Text(zh="{n} 项检查没有通过。", en="{n} of the checks failed.")
UNTOUCHED_HELP = Text(
    zh="这一题的函数还是原来的样子，所以没有检查。",
    en="The function is still as it was handed out, so nothing was checked.",
)
EXAMPLE = Text(zh="能看出问题的最小例子", en="The smallest example that shows it")
INPUTS = Text(zh="输入", en="input")
GOT = Text(zh="你的输出", en="your output")
WANT = Text(zh="应有的输出", en="expected output")
DIFFERS = Text(
    zh="红框：与应有的输出不同。白格：恰好是 0。",
    en="Red outline: not as expected. White cell: exactly 0.",
)
LEAK = Text(zh="谁影响了谁", en="Who depends on whom")
LEAK_LEGEND = Text(
    zh="第 t 行第 j 列：改动来源 j 时，接收位置 t 的输出变了多少。对角线右上方是未来，应当恰好是 0（白格）；红框是泄漏。",
    en="Row t, column j: how far the output at receiver t moved when source j was changed. Right of the diagonal lies the future, "
    "which should be exactly 0 (white); a red outline is a leak.",
)
LEAK_TITLE = Text(
    zh="泄漏矩阵，{rows} 行 {columns} 列：{n} 格在未来一侧不为 0，最大 {largest}，在接收位置 {t}、来源 {j}",
    en="leak matrix, {rows} by {columns}: {n} cells on the side of the future are not 0, the largest is {largest} "
    "at receiver {t}, source {j}",
)
NO_LEAK_TITLE = Text(
    zh="泄漏矩阵，{rows} 行 {columns} 列：未来一侧全部恰好是 0",
    en="leak matrix, {rows} by {columns}: everything on the side of the future is exactly 0",
)
MATRIX_DIFFERS = Text(zh="{n} 格与应有的不同", en="{n} cells are not as expected")
CROPPED = Text(zh="只画出前 {limit} 行和前 {limit} 列。", en="Only the first {limit} rows and columns are drawn.")

# The notebook as a whole
UNREADABLE = Text(zh="这份提交无法评分", en="This submission could not be graded")
MISSING = Text(zh="没有收到提交", en="Nothing was handed in")
SET_ASIDE = Text(zh="这份提交要由老师亲自查看", en="Your instructor will look at this submission")
SET_ASIDE_HELP = Text(
    zh="自动评分两次都没能完成。现在的分数不是最后的分数。",
    en="Automatic grading could not finish twice. The score shown is not the final one.",
)
MACHINE = Text(zh="评分机器出了故障", en="The grading machine failed")
MACHINE_HELP = Text(
    zh="这不是你的问题。这份提交会重新评分。", en="This is not your fault. The submission will be graded again."
)
PROBLEMS = Text(zh="没有运行完的单元格", en="Cells that did not run to the end")
CELL = Text(zh="第 {n} 个单元格", en="Cell {n}")
LIMITS = Text(zh="碰到的限制", en="Limits that were hit")
REPAIRS = Text(zh="评分前修补的地方", en="Mended before grading")
REPAIRS_HELP = Text(
    zh="你的笔记本与发下来的不完全一样，下面这些地方已经自动修好，没有因此扣分。",
    en="Your notebook differed from the one handed out. These places were mended automatically and cost no points.",
)
TIMES = Text(zh="（{n} 处）", en=" ({n} times)")
MORE = Text(zh="还有 {n} 条没有列出。", en="{n} more are not listed.")
BY_HAND = Text(zh="人工评分", en="Graded by hand")
COMMENT = Text(zh="老师的评语", en="Comment")
ADJUSTED = Text(zh="老师改过分数（自动评分为 {points}）", en="adjusted by hand (automatic score {points})")
EXTRA = Text(zh="附加分 {points}", en="extra credit {points}")
STILL_WAITING = Text(zh="另有 {points} 分等待人工评分。", en="Another {points} points are still to be graded by hand.")
OTHER_CELLS = Text(zh="其他检查", en="Other checks")
LATE = Text(zh="迟交 {by}，扣 {points} 分。", en="Handed in {by} late: {points} points off.")
LATE_FREE = Text(zh="迟交 {by}，没有扣分。", en="Handed in {by} late; no points were taken off.")
BEFORE_PENALTY = Text(zh="扣分前 {points}", en="{points} before the deduction")
NOT_SANDBOXED = Text(
    zh="评分时没有使用沙箱（NOT SANDBOXED）",
    en="NOT SANDBOXED: graded without the sandbox",
)
