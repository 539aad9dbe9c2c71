"""Attention maps: who takes how much from whom, on fixed probe texts, at chosen steps of a run.

`camera.py` takes them while a model is trained, `heads.py` says what a head does in a few figures, `shot.py`
is the file they are kept in (read without torch), `claims.py` holds them against what the mixer claims.
"""
