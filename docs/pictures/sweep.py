"""Makes the picture of docs/sweeps.md: the first heat map of the report of that page's sweep.

    python docs/pictures/sweep.py FOLDER    of the sweep; writes sweep-held.png beside itself

Needs playwright, and chromium on the path (or `STICTION_CHROMIUM`).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
import chromium
from playwright.sync_api import sync_playwright


def main():
    report = Path(sys.argv[1], "report.html").resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.executable(), headless=True, args=chromium.FLAGS
        )
        page = browser.new_page(viewport={"width": 900, "height": 900})
        page.goto(report.as_uri())
        page.wait_for_selector("body[data-drawn=yes]", timeout=1e3 * chromium.SECONDS)
        picture = Path(__file__).with_name("sweep-held.png")
        page.locator(".plot").first.screenshot(path=picture)
        browser.close()


main()
