"""Exercises: references, named mistakes, valid alternatives, and the diagnosis by replaying them."""

from autograder.exercises.registry import CourseFault, Exercise, Mistake, Solution, alternative, exercise, load, mistake

__all__ = ["CourseFault", "Exercise", "Mistake", "Solution", "alternative", "exercise", "load", "mistake"]
