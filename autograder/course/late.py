"""What lateness costs."""

from __future__ import annotations

from datetime import timedelta

from autograder.course import units
from autograder.course.document import Loc
from autograder.course.fields import Duration, Factor, Model
from autograder.text import Text


class LateStep(Model):
    """Handed in at most ``within`` after the due date, a submission keeps ``factor`` of its points."""

    within: Duration
    factor: Factor


class Late(Model):
    """What lateness costs. Within ``grace`` nothing; then by the first step that fits; beyond the last step ``after``."""

    grace: Duration = timedelta(0)
    steps: tuple[LateStep, ...] = ()
    after: Factor = 0.0

    def factor(self, late: timedelta) -> float:
        """The part of the points kept by a submission that came ``late`` after its due date."""
        if late <= max(self.grace, timedelta(0)):
            return 1.0
        return next((step.factor for step in self.steps if late <= step.within), self.after)


def contradictions(late: Late) -> list[tuple[Loc, Text]]:
    """Steps that do not follow one another in time, or pay for coming later; with their place in ``late``."""
    found: list[tuple[Loc, Text]] = []
    reached, kept = late.grace, 1.0
    for k, step in enumerate(late.steps):
        if step.within <= reached:
            found.append(
                (
                    ("steps", k, "within"),
                    Text(
                        zh=f"应比前一步（或宽限期）{units.long(reached)} 更长",
                        en=f"expected longer than the step or grace before it, {units.long(reached)}",
                    ),
                )
            )
        if step.factor > kept:
            found.append(
                (
                    ("steps", k, "factor"),
                    Text(zh=f"更晚却得分更多：应不大于 {kept:g}", en=f"later must not pay: expected {kept:g} or less"),
                )
            )
        reached, kept = step.within, step.factor
    if late.after > kept:
        found.append(
            (
                ("after",),
                Text(zh=f"更晚却得分更多：应不大于 {kept:g}", en=f"later must not pay: expected {kept:g} or less"),
            )
        )
    return found
