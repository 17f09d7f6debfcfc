"""What all probes share: the function, its inputs, the contract, and what is already known about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from autograder.leak.contract import Contract
from autograder.leak.inputs import Inputs
from autograder.leak.setting import Mode, Setting
from autograder.leak.stage import Stage
from autograder.leak.subject import Subject


@dataclass
class Bench:
    """The function under test and the facts established so far."""

    subject: Subject
    inputs: Inputs
    contract: Contract
    out_time_dim: int
    independent: set[Mode] = field(default_factory=set)  # modes in which samples proved independent
    noisy: set[Mode] = field(default_factory=set)  # modes in which another seed gives another output
    unrepeatable: set[Mode] = field(default_factory=set)  # modes in which even the same seed does: no probe works

    def stage(self, setting: Setting, folded: bool = False) -> Stage:
        """Draw the inputs of a setting; folding happens only where samples are known to be independent."""
        return Stage(self.subject, self.inputs, self.out_time_dim, setting, folded and setting.mode in self.independent)

    def offset(self, stage: Stage, name: str) -> int:
        """Row t may depend on positions j <= t + offset of this input."""
        lengths = {n: self.inputs.length(stage.values, n) for n in self.inputs.causal}
        return self.contract.offset(name, lengths, len(stage.base()))
