"""Runs a student's notebook kernel isolated, limited and fast. Knows nothing about grading."""

from autograder.sandbox.death import Death
from autograder.sandbox.limits import Limits
from autograder.sandbox.probe import Probe, best_tier, doctor
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.tiers import SandboxUnavailable, Tier
from autograder.sandbox.warm import WarmParent
from autograder.sandbox.watchdog import Usage

__all__ = [
    "Death",
    "Limits",
    "Probe",
    "Sandbox",
    "SandboxUnavailable",
    "Tier",
    "Usage",
    "WarmParent",
    "best_tier",
    "doctor",
]
