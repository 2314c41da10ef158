"""Draws the picture of docs/frontier.md from the numbers that benchmarks/frontier.py keeps.

    python docs/pictures/frontier.py      from docs/frontier.json, and writes the pages' tables too
    python docs/pictures/frontier.py NUMBERS.json PICTURE.png

One panel a scene, error over cost, both logarithmic. An error of exactly 0, which such an axis has
no place for, is a hollow mark on the lowest line, as is what is below it; a run that failed is a
cross on the highest.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from frontier import EVENTS, TITLES, creep_markdown, markdown, read  # noqa: E402

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("docs/pictures/frontier.py needs matplotlib: pip install 'stiction[demo]'")
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

LEAST, MOST = 1e-16, 3.0  # m: lines of what is exactly 0, and of what failed
COARSE = 1e-6  # m: where nobody is better, the axis ends below the best one
COLUMNS = 4
STYLES = {
    "stiction": {"color": "#1f4e9c", "linewidth": 2.6, "marker": "o", "zorder": 5},
    EVENTS: {"color": "#1f4e9c", "linewidth": 1.4, "linestyle": "--", "marker": "o", "zorder": 5},
    "mujoco": {"color": "#f0a30a", "linewidth": 1.6, "marker": "s"},
    "mujoco-A": {"color": "#e0563b", "linewidth": 1.6, "marker": "^"},
    "mujoco-C": {"color": "#a4161a", "linewidth": 1.6, "marker": "v"},
    "drake": {"color": "#2a9d5c", "linewidth": 1.2, "marker": "D"},
    "bullet": {"color": "#8d6cab", "linewidth": 1.2, "marker": "P"},
    "dart": {"color": "#7a7a7a", "linewidth": 1.2, "marker": "X"},
}
NAMED = {"stiction": 10.0, "mujoco-C": 1.0}
"""Points that are marked with their step [ms]."""


def said(value, units):
    """A power of ten in the largest unit that leaves no fraction."""
    for scale, unit in units:
        if value >= 0.999 * scale:
            return f"{value / scale:.0f} {unit}"
    return ""


def place(row):
    if row["ended"]:
        return MOST
    return max(row["error"], LEAST)


def curve(axes, method, rows):
    style = STYLES[method]
    rows = sorted(rows, key=lambda row: row["step"])
    fine = [row for row in rows if not row["ended"]]
    axes.plot(
        [row["cost"] for row in fine], [place(row) for row in fine], **{**style, "marker": None}
    )
    for row in rows:
        marker = "x" if row["ended"] else style["marker"]
        hollow = not row["ended"] and row["error"] < LEAST
        axes.plot(
            row["cost"], place(row), marker=marker, color=style["color"], markersize=6,
            markerfacecolor="white" if hollow else style["color"],
            zorder=style.get("zorder", 3) + 1, clip_on=False,
        )  # fmt: skip
        if NAMED.get(method) == row["step"] and not row["ended"]:
            axes.annotate(
                f"{row['step']:g} ms", (row["cost"], place(row)), (0, 8),
                textcoords="offset points", ha="center", color=style["color"], fontsize=8,
                zorder=9, bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},
            )  # fmt: skip


def panel(axes, title, rows):
    for method in STYLES:
        mine = [row for row in rows if row["method"] == method]
        if mine:
            curve(axes, method, mine)
    least = min((place(row) for row in rows), default=LEAST)
    bottom = LEAST / 5 if least < COARSE else least / 10
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 2e1), ylim=(bottom, 5 * MOST))
    axes.set_title(title, fontsize=11, fontweight="bold", loc="left")
    axes.axvline(1.0, color="0.6", linewidth=0.8, linestyle=":")
    for level, meaning in ((LEAST, "exactly 0"), (MOST, "failed")):
        if level < bottom:
            continue
        axes.axhline(level, color="0.8", linewidth=0.8)
        axes.annotate(
            meaning, (15.0, level), (0, 3), textcoords="offset points", ha="right",
            color="0.5", fontsize=8,
        )  # fmt: skip
    axes.grid(which="major", color="0.93", linewidth=0.6)
    axes.xaxis.set_major_locator(LogLocator(numticks=10))
    axes.yaxis.set_major_locator(LogLocator(base=1000.0 if bottom < COARSE else 10.0, numticks=12))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    times, lengths = (1.0, "s"), ((1.0, "m"), (1e-3, "mm"), (1e-6, "um"), (1e-9, "nm"))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda v, _: said(v, (times, (1e-3, "ms"), (1e-6, "us"))))
    )
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda v, _: said(v, (*lengths, (1e-12, "pm"), (1e-15, "fm"))))
    )
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def legend(axes, methods):
    axes.axis("off")
    lines = [
        Line2D([], [], label=TITLES[method], **STYLES[method])
        for method in STYLES
        if method in methods
    ]
    hollow = {"color": "0.4", "linestyle": "", "markerfacecolor": "white"}
    lines += [
        Line2D([], [], marker="o", label="exactly 0, or below 1e-16 m", **hollow),
        Line2D([], [], marker="x", color="0.4", linestyle="", label="failed: lost, fell, blew up"),
        Line2D([], [], color="0.6", linestyle=":", label="real time"),
    ]
    axes.legend(handles=lines, loc="center", frameon=False, fontsize=10)


def write_tables(rows):
    """Into the pages, in the place of tables with the same first two cells."""
    pages = {"README.md": (markdown,), "docs/index.md": (markdown,)}
    pages["docs/frontier.md"] = (markdown, creep_markdown)
    for name, makers in pages.items():
        page = HERE.parents[1] / name
        text = page.read_text(encoding="utf-8")
        for make in makers:
            table = make(rows)
            begin = text.index(" | ".join(table.split(" | ")[:2]))
            text = text[:begin] + table + text[text.index("\n\n", begin) :]
        page.write_text(text, encoding="utf-8")


def draw(rows, picture):
    plt.switch_backend("Agg")
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    height = -(-(len(panels) + 1) // COLUMNS)
    figure, grid = plt.subplots(
        height, COLUMNS, figsize=(15, 3.4 * height), layout="constrained", squeeze=False
    )
    cells = grid.ravel()
    for axes, title in zip(cells, panels, strict=False):
        panel(axes, title, [row for row in rows if row["panel"] == title])
    for axes in cells[len(panels) :]:
        axes.axis("off")
    legend(cells[len(panels)], {row["method"] for row in rows})
    figure.supxlabel(
        "processor time for a simulated second; a mark for each step: 0.5, 1, 2, 5, 10, 20 ms"
    )
    figure.supylabel("error")
    figure.savefig(picture, dpi=100)
    print(f"{len(panels)} scenes drawn, see {picture}")


def main(numbers=None, picture=None):
    rows = read(Path(numbers or HERE.parent / "frontier.json"))
    if numbers is None:
        write_tables(rows)
    draw(rows, Path(picture or HERE / "frontier.png"))


if __name__ == "__main__":
    main(*sys.argv[1:])
