"""One way of looking per module; `autograder.leak.plan` decides where and in which order they look."""
