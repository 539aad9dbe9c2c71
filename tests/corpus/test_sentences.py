"""Running text into sentences."""

from __future__ import annotations

import time

import pytest

from attnlab.corpus.sentences import paragraphs, sentences


@pytest.mark.parametrize(
    "parts",
    [
        ["This is one.", "This is another."],
        ["Mr. Speaker, Mr. Vice President, Members of the 114th Congress: Hello."],
        ["Wait...", "Then it rained."],
        ["Is it so?", "Yes!", "It is."],
        ["The U.S. Government paid $1,000.50 to Gen. Smith.", "He left."],
        ["We live in the U.S.", "We like it."],
        ["It began at 9 a.m. Eastern time.", "We slept until 10 a.m.", "But they did not."],
        ["See No. 5 and Nos. 7 and 8.", "No.", "That is wrong."],
        ["On Sept. 3, 1783, peace came.", "It had come in Sept.", "Few knew."],
        ["Franklin D. Roosevelt spoke.", "So did J. F. Kennedy."],
        ['He said, "We shall win."', "They did.", "(So they did.)", "“Yes.”", "The end."],
        ["2. Revenue rose.", "3. Costs fell."],
        ["It grew by 3.5 percent.", "In 1945 it fell."],
        ["The firm of Smith & Co. Limited paid.", "It was Jones and Co.", "They paid."],
        ["The act of March 3, 1849.", "$5 million was paid.", "19 men came."],
        ["One sentence without an end"],
        ["What I want is what you and I.", "Want it?"],
    ],
)
def test_sentences(parts: list[str]) -> None:
    text = " ".join(parts)

    assert sentences(text) == parts


def test_nothing_is_lost() -> None:
    text = 'A. B. "C." D? E!) (F.\n G.H. i.e. J etc. The K...  '
    assert " ".join(sentences(text)) == " ".join(text.split())


@pytest.mark.parametrize("text", ["", "  \n ", "\n\n"])
def test_no_text(text: str) -> None:
    assert sentences(text) == []
    assert paragraphs(text) == []


def test_paragraphs_are_between_blank_lines() -> None:
    assert paragraphs("one\ntwo\n\n \n three  four\n\n\nfive") == ["one two", "three four", "five"]


@pytest.mark.parametrize(
    "text", ["." * 300_000, "- " * 100_000 + ". A", "Mr. A " * 40_000, "a" * 300_000 + ". B"]
)
def test_time_grows_with_the_text_and_not_with_its_square(text: str) -> None:
    began = time.perf_counter()
    assert " ".join(sentences(text)) == " ".join(text.split())
    assert time.perf_counter() - began < 5
