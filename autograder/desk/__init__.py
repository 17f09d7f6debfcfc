"""The student's tools in a notebook: check, hint, status, show_weights and detect_leaks. They need torch and nothing else."""
