"""On a Slurm cluster, through submitit: every cell is a job of its own.

Jobs wait in the queue as anybody's do. A job that is lost (a node fails, its time is up) is sent again and
goes on from its checkpoint. When whoever sent the jobs is gone, they go on all the same, and the study finds
what they did when it is run again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError, WorkError
from attnlab.study.executors.afar import Lost
from attnlab.study.executors.remote import Errand, Report, run_errand

_JOBS = 64  # waiting or running at once: a polite number in a queue that others use
_POLL = 0.2


class SlurmYard:
    """A partition of the cluster whose `sbatch` this machine has; the default one unless named."""

    name = "slurm"

    def __init__(self, partition: str | None = None, *, minutes: int = 720, cluster: str = "slurm") -> None:
        self.partition, self.minutes = partition, minutes
        self.cluster = cluster  # "local": submitit's own, which runs jobs as processes of this machine
        self.gpus = 0

    def open(self, gpus: int) -> int:
        _library()
        if self.cluster == "slurm" and shutil.which("sbatch") is None:
            raise RequestError("--on slurm needs Slurm's sbatch on this machine, and there is none")
        self.gpus = gpus
        return _JOBS

    def send(self, errand: Errand) -> Any:
        submitit = _library()
        executor = submitit.AutoExecutor(folder=Path(errand.directory) / "slurm", cluster=self.cluster)
        executor.update_parameters(
            name="attnlab",
            timeout_min=self.minutes,
            cpus_per_task=errand.threads,
            gpus_per_node=self.gpus,
            **({"slurm_partition": self.partition} if self.partition else {}),
        )
        try:
            return executor.submit(run_errand, errand)
        except (OSError, RuntimeError, submitit.core.utils.FailedSubmissionError) as error:
            raise WorkError(f"Slurm took no job: {str(error).strip()}") from None

    def ended(self, handles: Sequence[Any], seconds: float) -> Mapping[Any, Report | Lost]:
        deadline = time.monotonic() + seconds
        while True:
            done = [job for job in handles if job.done()]
            if done or time.monotonic() > deadline:
                return {job: _end_of(job) for job in done}
            time.sleep(_POLL)

    def end(self, handle: Any) -> None:
        handle.cancel(check=False)

    def close(self) -> None:
        return


def _end_of(job: Any) -> Report | Lost:
    submitit = _library()
    try:
        report: Report = job.result()
    except submitit.core.utils.UncompletedJobError:
        return Lost(f"its job {job.job_id} ended in the state {job.state}")
    except submitit.core.utils.FailedJobError as error:
        raise WorkError(f"job {job.job_id} could not begin: {str(error).strip().splitlines()[-1]}") from None
    return report


def _library() -> Any:
    try:
        import submitit
    except ImportError:
        raise RequestError("--on slurm needs submitit: pip install 'attnlab[cluster]'") from None
    return submitit
