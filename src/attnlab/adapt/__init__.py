"""Pretrained models: other attention put into them, and how much of them to tune."""
