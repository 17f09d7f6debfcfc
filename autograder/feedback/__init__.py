"""What people read after grading: a card in the notebook, a page per student and notebook, a report on the class."""
