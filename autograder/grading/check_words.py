"""What ``autograder check`` says: each problem with what to do about it."""

from autograder.text import Text

# cells
NO_REGION = Text(
    zh="{notebook}：{cell} 里没有“### BEGIN SOLUTION”到“### END SOLUTION”的一段",
    en="{notebook}: {cell}: no '### BEGIN SOLUTION' … '### END SOLUTION' region",
)
NO_POINTS = Text(
    zh="{notebook}：评分单元 {cell} 没有分值，请在 nbgrader 的 Create Assignment 面板里填上",
    en="{notebook}: {cell}: the grade cell has no points: set them in nbgrader's Create Assignment panel",
)
TWICE = Text(
    zh="source/{assignment} 里不止一个单元的 grade_id 是 {cell}：请改掉其余的",
    en="{cell}: more than one cell of source/{assignment} has this grade_id: rename the others",
)
NO_ANSWER_CELL = Text(
    zh="{exercise}：source/{assignment} 里没有 grade_id 为 {exercise}_answer 的答题单元",
    en="{exercise}: no answer cell with grade_id '{exercise}_answer' in source/{assignment}",
)
NO_GRADE_CELL = Text(
    zh="{exercise}：source/{assignment} 里没有 grade_id 为 {exercise} 的评分单元",
    en="{exercise}: no grade cell with grade_id '{exercise}' in source/{assignment}",
)

# solutions
NO_SOLUTIONS = Text(
    zh="solutions/{assignment} 里还没有参考解答：请建一个 .py 文件，用 @exercise 写一个",
    en="solutions/{assignment} holds no references yet: make a .py file and write one with @exercise",
)
NO_REFERENCE = Text(
    zh="{exercise}：没有参考解答，请用 @exercise 写在 solutions/{assignment} 的一个文件里",
    en="{exercise}: no reference: add it with @exercise to a file in solutions/{assignment}",
)
NO_MISTAKE = Text(
    zh="{exercise}：没有列出错误，请用 @mistake(of={exercise}, …) 至少写一个",
    en="{exercise}: no named mistake: add at least one with @mistake(of={exercise}, …)",
)
NO_ALTERNATIVE = Text(
    zh="{exercise}：没有另一种正确写法，请用 @alternative(of={exercise}) 写一个",
    en="{exercise}: no valid alternative: add one with @alternative(of={exercise})",
)

# hidden tests
NO_TESTS = Text(
    zh="tests/hidden/{assignment} 里还没有隐藏测试：请建一个 test_….py 文件",
    en="tests/hidden/{assignment} holds no hidden tests yet: make a test_….py file",
)
NO_TEST = Text(
    zh="{exercise}：没有隐藏测试，请在 {folder} 里写一个带 @pytest.mark.exercise('{exercise}') 的类",
    en="{exercise}: no hidden test: add a class with @pytest.mark.exercise('{exercise}') under {folder}",
)
REFERENCE = Text(zh="参考解答", en="the reference")
RIGHT_FAILS = Text(
    zh="{exercise}：{solution} 应当全部通过，却没有通过 {test}（种子 {seed}）：{said}",
    en="{exercise}: {solution} should pass everything but fails {test} (seed {seed}): {said}",
)
SURVIVES = Text(
    zh="{exercise}：错误 {mistake} 得了满分，请加一个它通不过的隐藏测试",
    en="{exercise}: the mistake {mistake} earns everything: add a hidden test that fails it",
)
TAKEN_FOR = Text(
    zh="{exercise}：错误 {mistake} 被认作 {other}（种子 {seed}）：在这些输入上两者的结果相同，"
    "请加一个分得开它们的隐藏测试，或者合成一个",
    en="{exercise}: the mistake {mistake} is named as {other} (seed {seed}): both give equal outputs on these inputs: "
    "add a hidden test that tells them apart, or make them one",
)
UNNAMED = Text(
    zh="{exercise}：错误 {mistake} 没有被认出（种子 {seed}）：再运行一次，结果就不同了",
    en="{exercise}: the mistake {mistake} is not named (seed {seed}): run again, it gives other outputs",
)
STUB_PASSES = Text(
    zh="{exercise}：没有作答也能通过 {tests}，请让它们检查结果",
    en="{exercise}: an empty answer passes {tests}: let them check a result",
)

# release
STALE = Text(
    zh="release/{assignment}/{notebook} 和源笔记本不一致：请运行 `autograder release {assignment}`",
    en="release/{assignment}/{notebook} does not match its source: run `autograder release {assignment}`",
)
HOLDS_REFERENCE = Text(
    zh="发布版里的 {file} 含有 {exercise} 的参考解答",
    en="{file} in the release holds the reference of {exercise}",
)
HOLDS_TEST = Text(zh="发布版里的 {file} 含有隐藏测试", en="{file} in the release holds a hidden test")
