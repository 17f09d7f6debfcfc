"""The mask-leak detector: does an output row depend on a later input position?

Needs torch alone. See ``docs/leak.md`` for what each verdict means and what the search covers.
"""

from autograder.leak.detect import assert_causal, detect
from autograder.leak.report import Replay, Report
from autograder.leak.setting import Finding, Setting

__all__ = ["Finding", "Replay", "Report", "Setting", "assert_causal", "detect"]
