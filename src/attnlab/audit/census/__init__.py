"""Every causal language model class of the installed transformers, built small and audited."""

from attnlab.audit.census.run import Census, take_census

__all__ = ["Census", "take_census"]
