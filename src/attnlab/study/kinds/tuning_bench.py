"""One arm of a tuning study: its texts and checkpoint, its search, its runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.adapt.amounts import Head
from attnlab.adapt.answers import classified
from attnlab.adapt.audited import audited
from attnlab.adapt.batches import TextBatches, TextLabel
from attnlab.adapt.features import frozen_features
from attnlab.adapt.labelled import read_labelled
from attnlab.adapt.pretrained import pad_with
from attnlab.adapt.search import Trial, search
from attnlab.adapt.search.trials import Ending, best_of
from attnlab.adapt.texts import refuse_too_long
from attnlab.adapt.tuned import TunedModel
from attnlab.adapt.views import TextView, View
from attnlab.errors import WorkError
from attnlab.evaluation.classified import Classified, confusions
from attnlab.evaluation.text_floors import figures, text_floors
from attnlab.model.count import count_parameters, derive
from attnlab.record import Check, Items, RunResult
from attnlab.study.changes import changed
from attnlab.study.kind import Bench
from attnlab.study.kinds.tuning import Tuning
from attnlab.study.kinds.tuning_watch import Evaluation, Watch
from attnlab.study.trained_cell import Ended
from attnlab.training import Checkpoint, Interrupted, Observer, Progress, Run, train
from attnlab.training.device import present
from attnlab.verdict.chosen import corrected

_OWN_SEEDS = 1_000_000  # a trial's seed is its number from here on: no run of a study has it


class TuningBench(Bench):
    """A checkpoint, and the texts it is to be tuned on."""

    def __init__(self, setup: Tuning, base: Path | None) -> None:
        self.setup, self.base = setup, base
        self.device = present(setup.training.device)
        self.tokenizer = pad_with(setup.model.load_tokenizer(base))
        self.corpus = read_labelled(setup.corpus, self.tokenizer, setup.model.longest, base)
        self.classes = self.corpus.classes

    def facts(self) -> Mapping[str, Any]:
        return {**self.corpus.facts, "checkpoint": self.setup.model.checkpoint}

    def shown(self) -> tuple[str, ...]:
        return (f"as the model reads it: {self.corpus.example}",)

    def floors(self) -> Mapping[str, Mapping[str, float]]:
        return {name: figures(found) for name, found in self._floor_answers.items()}

    def floor_items(self) -> Mapping[str, Mapping[str, Items]]:
        test = self.corpus.splits["test"]
        return {name: {"test": test.by_document(found.items)} for name, found in self._floor_answers.items()}

    @cached_property
    def _floor_answers(self) -> Mapping[str, Classified]:
        train, test = (self.corpus.splits[name].plain_texts for name in ("train", "test"))
        return text_floors(train, test, self.classes)

    def parameters(self) -> tuple[int, list[dict[str, Any]]]:
        model = self._first
        sizes = {"width": model.sizes.d, "labels": len(self.classes)}
        return count_parameters(model), [row.plain() for row in derive(model.inner, sizes)]

    def audit(self) -> tuple[Check, ...]:
        return audited(self.setup.model, len(self.classes), self.tokenizer, self.base)

    def run(self, arm: str, seed: int, folder: Path, observer: Observer) -> RunResult:
        setup, found = self._chosen(folder, observer)
        path = folder / "checkpoint.safetensors"
        watch = Watch(observer, self._collapse_told(setup, observer))
        model, progress = self._trained(setup, seed, path, watch)
        Checkpoint.of(model, None, {"seed": seed, "progress": vars(progress)}).write(path)
        return self._measured(arm, seed, setup, model, progress, found)

    # ---- one training, of a run or of a trial --------------------------------------------------------------

    def _trained(
        self, setup: Tuning, seed: int, checkpoint: Path, watch: Watch
    ) -> tuple[TunedModel, Progress]:
        model = self.model(setup, seed)
        batches = TextBatches(self._view(model, "train"), setup.training.batch, seed)
        training = setup.training
        if training.evaluate_every is None:
            training = training.model_copy(update={"evaluate_every": batches.per_epoch})
        steps = training.resolve_steps(batches.per_epoch, self.corpus.splits["train"].texts.tokens)
        watch.per_epoch = batches.per_epoch
        run = Run(
            model=model,
            objective=TextLabel(setup.model.product_type),
            batches=batches,
            training=training,
            steps=steps,
            seed=seed,
            evaluate=lambda: watch.evaluation(self._on_train(model), self.answers(model, "dev")),
            checkpoint=checkpoint,
            watched=setup.measure.watched,
        )
        return model, train(run, watch)

    def model(self, setup: Tuning, seed: int) -> TunedModel:
        """With its values before the first step."""
        model = setup.model.build(len(self.classes), seed, self.base).to(self.device)
        refuse_too_long(setup.model.longest + setup.model.amount.places, model.inner.config)
        return model

    def answers(self, model: TunedModel, split: str, chosen: Any = None) -> Classified:
        return classified(model, self._view(model, split), self.classes, chosen)

    def _on_train(self, model: TunedModel) -> Classified:
        """The answers on a sample of what is trained on, spread evenly."""
        size = len(self.corpus.splits["train"].texts)
        wanted = min(self.setup.measure.train_texts or 1, size)
        return self.answers(model, "train", np.arange(wanted) * size // wanted)

    def _view(self, model: TunedModel, split: str) -> View:
        if model.frozen_body and model.same_body and self._features is not None:
            return self._features[split]
        return self._texts[split]

    @cached_property
    def _texts(self) -> dict[str, TextView]:
        padding = self.tokenizer.pad_token_id
        return {name: TextView(split.texts, padding) for name, split in self.corpus.splits.items()}

    @cached_property
    def _features(self) -> Mapping[str, View] | None:
        """What the frozen body makes of every text: the same in every run, so it is worked out once."""
        body = self.setup.model.model_copy(update={"amount": Head(), "fresh": False, "attention": None})
        model = self.model(self.setup.model_copy(update={"model": body}), 0)
        found = frozen_features(model, list(self._texts.values()))
        return None if found is None else dict(zip(self._texts, found, strict=True))

    @cached_property
    def _first(self) -> TunedModel:
        return self.model(self.setup, 0)

    # ---- the search ----------------------------------------------------------------------------------------

    def _chosen(self, folder: Path, observer: Observer) -> tuple[Tuning, dict[str, Any]]:
        """The set-up to run, and, where it was searched for, what was tried."""
        setup = self.setup
        if setup.search is None:
            return setup, {}
        place = folder.parents[2] / "search" / folder.parent.name
        watched, count = setup.measure.watched, setup.search.count
        work = self._trial(count, observer)
        keeps_best = setup.training.keep == "best"
        tried = search(setup.search, place, watched, work, observer.should_stop, keeps_best=keeps_best)
        best = best_of(tried, watched)
        if best is None:
            raise WorkError(f"none of the {len(tried)} trials of the search came to its end: {place}")
        found: dict[str, Any] = {
            "method": setup.search.name,
            "choose": watched.name,
            "trials": [one.plain() for one in tried],
            "chosen": best.number,
        }
        if setup.measure.choose == "accuracy":  # of a choice by loss, right and wrong answers tell nothing
            # Whoever chooses a trial may choose one of its evaluations with it: then all are candidates.
            whole = [one.right if keeps_best else one.right[-1:] for one in tried if one.best is not None]
            candidates = [[float(right) for right in bits] for of_one in whole for bits in of_one]
            found["corrected"] = corrected(candidates).plain()
        return changed(setup, best.setting, self.base), found

    def _trial(self, count: int, observer: Observer) -> Callable[[Trial], Ending]:
        """What is done for one trial: train at its setting, tell of every evaluation, end when hopeless."""

        def work(trial: Trial) -> Ending:
            setup = changed(self.setup, trial.setting, self.base)
            said = ", ".join(f"{place} {_short(value)}" for place, value in trial.setting.items())
            watched = setup.measure.watched.name

            def each(now: Evaluation) -> None:
                right = "".join(str(int(one)) for one in now.dev.items["correct"])
                trial.measured(round(100 * now.epochs), now.row[watched], right, now.seconds)

            watch = Watch(observer, each, curve=False, over=lambda: trial.hopeless)
            try:
                _, progress = self._trained(setup, _OWN_SEEDS + trial.number, trial.checkpoint, watch)
            except Interrupted:
                if not trial.hopeless:
                    raise
                observer.note(f"trial {trial.number + 1} of {count} ({said}) ended: others were better there")
                return "pruned"
            if progress.status == "diverged":
                observer.note(f"trial {trial.number + 1} of {count} ({said}) diverged: {progress.reason}")
                return "diverged"
            best = progress.best if progress.best is not None else progress.last[watched]
            observer.note(f"trial {trial.number + 1} of {count} ({said}): {watched} {best:.4f}")
            return "done"

        return work

    # ---- what a run measured -------------------------------------------------------------------------------

    def _collapse_told(self, setup: Tuning, observer: Observer) -> Callable[[Evaluation], None]:
        """Says once, while there is still time to stop, that the model gives one answer to everything."""
        told: list[float] = []

        def each(now: Evaluation) -> None:
            if now.dev.answers.collapsed and not told:
                told.append(now.epochs)
                check = now.dev.check(now.row["train_loss"], self._shares)
                observer.note(f"after {now.epochs:g} epochs: {check.evidence}")

        return each

    @cached_property
    def _shares(self) -> list[float]:
        """How frequent each label is in training."""
        labels = self.corpus.splits["train"].texts.labels
        return [float(share) for share in np.bincount(labels, minlength=len(self.classes)) / len(labels)]

    def _measured(
        self,
        arm: str,
        seed: int,
        setup: Tuning,
        model: TunedModel,
        progress: Progress,
        found: dict[str, Any],
    ) -> RunResult:
        counted = setup.model.amount.counted(model.sizes)
        trained_at = time.perf_counter()
        trained = count_parameters(model)
        whole = model.sizes.body + model.sizes.head
        amount = {**vars(counted), "part": setup.model.amount.name, "trained": trained, "model": whole}
        amount["learning_rate"] = setup.training.optimizer.learning_rate
        exhibits: dict[str, Any] = {"amount": amount, **({"search": found} if found else {})}
        ended = Ended(arm, seed, progress, exhibits, (), trained_at)
        if ended.diverged:
            return ended.result()
        on_train = self._on_train(model)
        answers = {name: self.answers(model, name) for name in self.corpus.splits if name != "train"}
        metrics = {
            "train_accuracy": on_train.items.mean("correct"),
            "train_loss": on_train.items.mean("loss"),
        }
        if "corrected" in found:
            metrics["dev_accuracy_corrected"] = found["corrected"]["corrected"]
        if found:
            metrics["search_seconds"] = sum(one["seconds"] for one in found["trials"])
        for name, split in answers.items():
            metrics |= split.metrics(name)
        items = {name: self.corpus.splits[name].by_document(split.items) for name, split in answers.items()}
        check = answers["test"].check(metrics["train_loss"], self._shares)
        return ended.result(metrics, items, standing=(check,), exhibits={"confusion": confusions(answers)})


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
