"""Distillation: a student learns from a teacher's texts, or from what the teacher holds probable."""
