"""The fixed sentences of the class report, in both languages."""

from __future__ import annotations

from autograder.text import Text

REPORT = Text(zh="班级报告", en="Class report")
STUDENTS = Text(zh="交了作业的学生", en="students handed in")
MEAN = Text(zh="平均得分", en="mean score")
MEDIAN = Text(zh="得分中位数", en="median score")
MISSING = Text(zh="没有交", en="missing")
LATE = Text(zh="迟交", en="late")
NOBODY = Text(zh="还没有可以统计的提交。", en="There are no submissions to count yet.")

COURSE_FAULTS = Text(zh="课程本身的问题", en="Faults in the course itself")
COURSE_FAULTS_HELP = Text(
    zh="这些检查因为自身的错误没有计分，没有学生因此丢分。改好后请重新评分。",
    en="These checks failed by their own fault and were not counted; no student lost points. Mend them and grade again.",
)
TO_LOOK_AT = Text(zh="需要人来看的提交", en="Submissions a person should look at")
UNREADABLE = Text(zh="读不出来", en="could not be read")
SET_ASIDE = Text(zh="两次使评分进程中断", en="ended the grading process twice")
MACHINE_FAULT = Text(zh="评分机器故障，需要重新评分", en="the grading machine failed; grade again")
NOT_SANDBOXED = Text(zh="{n} 份没有用沙箱评分（NOT SANDBOXED）", en="{n} graded without the sandbox (NOT SANDBOXED)")

SCORES = Text(zh="得分分布", en="Scores")
SCORE_AXIS = Text(zh="总分的百分比", en="percent of all points")
EXERCISES = Text(zh="各题的难度与区分度", en="Exercises: difficulty and discrimination")
EXERCISES_HELP = Text(
    zh="“得分率”越低题越难。“区分度”是这题得分与其余得分的相关系数：低于 0.2 的题分不出会与不会，值得看一看；人数少于 {n} 或所有人得分相同时不算。",
    en="The lower the share of points earned, the harder the exercise. Discrimination is the correlation between an exercise and the rest "
    "of the score: below 0.2 it does not tell who understands and is worth a look. It is left out for fewer than {n} answers, or when "
    "all scored alike.",
)
EXERCISE = Text(zh="题目", en="exercise")
SHARE = Text(zh="得分率", en="points earned")
FULL = Text(zh="满分", en="full marks")
UNTOUCHED = Text(zh="未作答", en="not answered")
DISCRIMINATION = Text(zh="区分度", en="discrimination")

MISTAKES = Text(zh="常见错误", en="Named mistakes")
NO_MISTAKES = Text(zh="没有人犯清单上的错误。", en="Nobody made a mistake on the list.")
UNLISTED = Text(zh="清单上没有的错误", en="Mistakes that nobody has named yet")
UNLISTED_HELP = Text(
    zh="输出相同的答案归为一组。人数多的值得写进清单：在解答文件里加一个 `@mistake`，下次就能认出来。",
    en="Answers with equal outputs are counted together. A frequent one is worth naming: add a `@mistake` to the solutions file and it "
    "will be recognised next time.",
)
NO_UNLISTED = Text(zh="所有错误都认出来了。", en="Every mistake was recognised.")
PEOPLE = Text(zh="{n} 人", en="{n} students")
PERSON = Text(zh="{n} 人", en="{n} student")
ONE_EXAMPLE = Text(zh="一个例子（匿名）", en="an example (anonymous)")
GOT = Text(zh="学生的输出", en="the student's output")
WANT = Text(zh="应有的输出", en="expected output")
READS = Text(zh="学生读到的提示", en="what the student reads")

TESTS = Text(zh="隐藏检查", en="Hidden tests")
TESTS_HELP = Text(
    zh="只算作答了的学生。没有人通过的检查可能要求过高或有错；所有人都通过的检查分不出什么。",
    en="Of those who answered. A test that nobody passes may ask too much or be wrong; one that everybody passes tells nothing apart.",
)
NOBODY_PASSES = Text(zh="没有人通过", en="nobody passes")
EVERYBODY_PASSES = Text(zh="所有人都通过", en="everybody passes")
PASSED = Text(zh="通过", en="passed")
ALL_TESTS = Text(zh="全部检查的通过率", en="How often each test was passed")

TIME = Text(zh="时间与限制", en="Time and limits")
TIME_AXIS = Text(zh="每份笔记本的评分时间（秒）", en="seconds to grade a notebook")
TIME_SUMMARY = Text(
    zh="总计 {total}；中位数 {median}，最长 {longest}。", en="{total} in all; median {median}, longest {longest}."
)
NO_LIMITS = Text(zh="没有提交碰到限制。", en="No submission hit a limit.")
NOTEBOOKS = Text(zh="{n} 份", en="{n} notebooks")

LATE_AND_MISSING = Text(zh="迟交与缺交", en="Late and missing")
NONE_LATE = Text(zh="没有人迟交或缺交。", en="Nobody was late, and nobody is missing.")
STAFF = Text(zh="仅供教师使用", en="for staff only")
