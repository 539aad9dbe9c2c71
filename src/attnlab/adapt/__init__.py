"""Pretrained models: loading them with their own tokenizer, how much of one to tune, our operators in one."""
