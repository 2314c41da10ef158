"""Writes numbers and pictures into the pages of this folder.

    stiction reproduce all --out reproduced
    python docs/experiments/update.py reproduced

Between the two markers of NAME.md goes what `reproduced/NAME.json` holds: claims, tables, plots,
pictures, notes, machine. index.md gets the claims of all. Needs matplotlib (`pip install -e
.[demo]`), and for pictures of scenes a graphics backend that MuJoCo can use.
"""

import io
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
from PIL import Image

from stiction.reproduce import NAMES
from stiction.reproduce.picture import render
from stiction.reproduce.report import DOUBLES, colours, markdown, ranges
from stiction.reproduce.result import Result, Table, read

HERE = Path(__file__).parent
BEGIN, END = "<!-- numbers -->", "<!-- end of numbers -->"
DPI = 100


def main(folder):
    results = []
    for name in NAMES:
        path = Path(folder, f"{name}.json")
        if not path.is_file():
            sys.exit(f"{path} is missing: run `stiction reproduce {name} --out {folder}` first")
        results.append(read(path))
    for result in results:
        if result.quick:
            sys.exit(f"{result.name} is of a quick run: leave out --quick")
        insert(HERE / f"{result.name}.md", numbers_of(result))
    insert(HERE / "index.md", summary(results))


def insert(page, text):
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    old, _, after = rest.partition(END)
    if not old:
        sys.exit(f"{page.name} lacks the markers {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def numbers_of(result):
    """All of a result as Markdown; writes its pictures."""
    parts = [claims([("", result)])]
    for k, picture in enumerate(result.pictures, 1):
        image = render(picture)
        if image is None:
            sys.exit(f"no graphics backend drew {picture.title!r}: try MUJOCO_GL=osmesa")
        file = HERE / f"{result.name}-scene-{k}.png"
        save(Image.open(io.BytesIO(image)), file)
        parts.append(f"![{picture.title}]({file.name})\n\n{picture.title}.")
    for table in result.tables:
        note = f"\n\n{table.note}" if table.note else ""
        parts.append(f"**{table.title}**\n\n{markdown(table)}{note}")
    for k, plot in enumerate(result.plots, 1):
        file = HERE / f"{result.name}-plot-{k}.png"
        draw(plot, file)
        parts.append(f"![{plot.title}]({file.name})\n\n{plot.title}.")
    parts.append("\n".join(f"- {note}" for note in result.notes))
    parts.append(machine(result, result.seconds))
    return "\n\n".join(parts)


def claims(named):
    """Claims of results; a name that is not empty becomes the first column."""
    first = ("experiment",) if any(name for name, _ in named) else ()
    rows = [
        (*((name,) if first else ()), claim.text, claim.theirs, claim.ours, claim.holds)
        for name, result in named
        for claim in result.claims
    ]
    return markdown(Table("", (*first, "claim", "theirs", "ours", "holds"), tuple(rows)))


def summary(results):
    linked = [(f"[{r.name}]({r.name}.md)", r) for r in results]
    solves = sum(r.counts["solves"] for r in results)
    failures = sum(r.counts["failures"] for r in results)
    held = [claim.holds for r in results for claim in r.claims]
    return "\n\n".join(
        [
            claims(linked),
            f"Of {len(held)} claims {held.count('yes')} hold, {held.count('in part')} in part, "
            f"{held.count('no')} not. Solves by our own methods (search, exact cone, no-slip and "
            f"the polygon solvers): {solves}, of which failed: {failures}.",
            machine(results[0], sum(r.seconds for r in results)),
        ]
    )


def machine(result: Result, seconds):
    facts = {k: v for k, v in result.machine.items() if v != "not installed"}
    seeds = f" Seeds: {ranges(result.seeds)}." if result.seeds else ""
    listed = ", ".join(f"{key} {value}" for key, value in facts.items())
    took = f" It took {seconds:.0f} s, on a shared machine."
    return f"Measured with {listed}.{seeds}{took}"


def draw(plot, file):
    """The plot as PNG, in the colours of the HTML reports."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), dpi=DPI)
    for line, colour in zip(plot.lines, colours(plot), strict=True):
        style = {"color": colour, "label": line.name}
        if line.points:
            axes.plot(line.x, line.y, "o", markersize=4, **style)
        else:
            marker = "o" if plot.log and not line.dashed and len(line.x) > 2 else None
            dash = "--" if line.dashed else "-"
            axes.plot(line.x, line.y, dash, marker=marker, markersize=4, linewidth=1.4, **style)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    if plot.log:
        axes.set(xscale="log", yscale="log")
        sizes = sorted({x for line in plot.lines for x in line.x})
        low, high = sizes[0], sizes[-1]
        ticks = [size for size in DOUBLES if low <= size <= high]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.grid(color="#e3e7e9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, bbox_to_anchor=(1.01, 1.0), loc="upper left")
    figure.tight_layout()
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", bbox_inches="tight")
    plt.close(figure)
    save(Image.open(pixels), file)


def save(image, file):
    """With 128 colours: a third of the size, and no difference to the eye."""
    image.convert("RGB").quantize(128).save(file, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("which directory? python docs/experiments/update.py reproduced")
    main(sys.argv[1])
