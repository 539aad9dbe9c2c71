"""On a Ray cluster: every cell is a task with the resources it needs.

The cluster's machines must see the study's directory and have attnlab installed. Retries are ours, not Ray's:
a task that is lost with its machine goes on elsewhere from its checkpoint, and a person is told.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.errors import RequestError, WorkError
from attnlab.study.executors.afar import Lost
from attnlab.study.executors.remote import Errand, Report, run_errand

_KNOCK_SECONDS = 5.0
_AHEAD = 2  # errands out for every one that has room: the next is there when one ends


class RayYard:
    """A cluster by its address; without one, the one that `RAY_ADDRESS` names or that runs on this machine;
    else a new one here."""

    name = "ray"
    takes_urls = True  # its errands need no directory of the study

    def __init__(self, address: str | None = None) -> None:
        self.address = address
        self.gpus = 0
        self._ours = False

    def open(self, gpus: int) -> int:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray = _library()
        self.gpus = gpus
        if not ray.is_initialized():
            self._ours = True
            self._connect(ray)
        found = ray.cluster_resources()
        if gpus and not found.get("GPU"):
            raise RequestError("training.device is 'cuda', and no machine of the Ray cluster offers a GPU")
        return max(1, int(found.get("CPU", 1))) * _AHEAD

    def _connect(self, ray: Any) -> None:
        try:
            if self.address and ":" in self.address:
                _knock(self.address)  # Ray itself would try for minutes
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            where = repr(self.address) if self.address else "on this machine"
            reason = str(error).strip().split("\n")[0]
            raise WorkError(f"no Ray cluster could be reached {where}: {reason}") from None

    def send(self, errand: Errand) -> Any:
        ray = _library()
        task = ray.remote(run_errand).options(
            num_cpus=errand.threads, num_gpus=self.gpus, max_retries=0, name=f"{errand.arm} · {errand.seed}"
        )
        return task.remote(errand)

    def ended(self, handles: Sequence[Any], seconds: float) -> Mapping[Any, Report | Lost]:
        ray = _library()
        ray.wait(list(handles), num_returns=1, timeout=seconds)
        done, _ = ray.wait(list(handles), num_returns=len(handles), timeout=0)
        return {handle: self._end_of(handle) for handle in done}

    def _end_of(self, handle: Any) -> Report | Lost:
        ray = _library()
        errors = ray.exceptions
        try:
            report: Report = ray.get(handle)
        except errors.NodeDiedError:
            return Lost("its machine died")
        except errors.OutOfMemoryError:
            return Lost("its machine ran out of memory")
        except (errors.WorkerCrashedError, errors.LocalRayletDiedError, errors.ObjectLostError):
            return Lost("its process died")
        except errors.TaskCancelledError:
            return Lost("it was ended")
        except errors.RayError as error:
            raise WorkError(f"Ray could not run a cell: {str(error).strip().splitlines()[-1]}") from None
        return report

    def end(self, handle: Any) -> None:
        ray = _library()
        with contextlib.suppress(ray.exceptions.RayError):
            ray.cancel(handle, force=True)

    def close(self) -> None:
        if self._ours:
            _library().shutdown()
            self._ours = False


def _knock(address: str) -> None:
    """Whether anybody listens at HOST:PORT, or at ray://HOST:PORT."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        raise ValueError("an address is HOST:PORT, ray://HOST:PORT or auto")
    socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise RequestError("--on ray needs Ray: pip install 'attnlab[cluster]'") from None
    return ray
