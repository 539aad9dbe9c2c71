"""A real browser: pages in any width, by day and by night; what they say to the console and ask of a network;
what axe finds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
AXE = Path(__file__).parent / "axe" / "axe.min.js"

needs_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")


def start(profile: Path) -> Any:
    """A browser without a window that asks nobody for anything by itself."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))


def show(browser: Any, page: Path | str, width: int = 1280, scheme: str = "light", height: int = 900) -> None:
    """Open a file or an address."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    browser.get_log("browser"), browser.get_log("performance")  # forget what was before
    browser.get(page.as_uri() if isinstance(page, Path) else page)


def requests(browser: Any) -> list[str]:
    """Every address that was asked since the page was shown."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def strangers(browser: Any, *ours: str) -> list[str]:
    """Those that are neither the page itself nor held by it, nor of the browser (its first, empty page)."""
    own = ("file:", "data:", "blob:", "chrome:", *ours)
    return [url for url in requests(browser) if not url.startswith(own)]


def axe(browser: Any) -> list[tuple[str, str, str]]:
    """What an accessibility check finds: the rule, how bad, and where first."""
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    return [(v["id"], v["impact"], v["nodes"][0]["html"][:200]) for v in found["violations"]]
