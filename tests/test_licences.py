"""The page of dependencies is of the versions that are pinned, and says every licence."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

from .licences import licence, listed, pinned


def test_every_pinned_package_that_is_installed_is_listed() -> None:
    page, versions = listed(), pinned()
    missing = [name for name in versions if name not in page and _installed(name)]
    assert not missing, "python -m tests.licences writes the page"
    assert {name: version for name, (version, _) in page.items() if name in versions} == {
        name: version for name, version in versions.items() if name in page
    }


def test_licences_are_those_that_the_packages_name() -> None:
    versions = pinned()
    for name, (version, told) in listed().items():
        if name in versions and _installed(name) and distribution(name).version == version:
            assert licence(distribution(name)) == told, name
            assert told not in ("", "not named", "UNKNOWN"), name


def _installed(name: str) -> bool:
    """By itself: setuptools, once loaded, has packages of its own stand among them."""
    try:
        return "_vendor" not in str(distribution(name).locate_file(""))
    except PackageNotFoundError:
        return False
