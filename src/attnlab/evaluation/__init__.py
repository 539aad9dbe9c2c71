"""Evaluation: the same measurements, taken the same way, for every arm."""
