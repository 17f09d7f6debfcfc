"""The gradebook and what goes in and out of it: collected submissions, scores, late penalties, exports, LMS files."""
