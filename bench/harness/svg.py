"""Bars, drawn as SVG with nothing but text: a picture that needs no library and differs only where its figures do."""

from html import escape
from math import log10

LABEL_WIDTH, BAR_WIDTH, FIGURE_WIDTH = 250, 430, 120
BAR_HEIGHT, GAP, GROUP_GAP, HEAD, FOOT, LEGEND = 15, 3, 11, 34, 26, 22
COLOURS = ["#4c72b0", "#dd8452", "#55a868", "#8172b3"]
LINE_COLOURS = [*COLOURS, "#c44e52", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd"]
WIDTH = LABEL_WIDTH + BAR_WIDTH + FIGURE_WIDTH


def bars(title, groups, series, form, footer, logarithmic=False):
    """`groups`: a label and a figure for each of the series (None: none). The bars of a group stand together."""
    figures = [figure for _, row in groups for figure in row if figure]
    longest = max(figures)
    least = 10 ** int(log10(min(figures)) - 1) if logarithmic else 0

    def share(figure, _):
        return log10(figure / least) / log10(longest / least) if logarithmic else figure / longest

    return drawn(title + (" (logarithmic)" if logarithmic else ""), groups, series, form, footer, share)


def bars_by_group(title, groups, series, form, footer):
    """The same for figures of several kinds: each group has a scale of its own."""
    return drawn(title, groups, series, form, footer, lambda figure, row: figure / max(row))


def drawn(title, groups, series, form, footer, share):
    parts, top = [], HEAD + (LEGEND if len(series) > 1 else 0)
    for label, row in groups:
        middle = top + (len(row) * (BAR_HEIGHT + GAP) - GAP) / 2
        parts.append(words(LABEL_WIDTH - 8, middle + 4, label, "end"))
        for colour, figure in zip(COLOURS, row):
            if figure is not None:
                length = max(1.0, share(figure, row) * BAR_WIDTH)
                parts.append(box(LABEL_WIDTH, top, length, BAR_HEIGHT, colour))
                parts.append(words(LABEL_WIDTH + length + 6, top + 12, form.format(figure)))
            top += BAR_HEIGHT + GAP
        top += GROUP_GAP
    head = [words(8, 20, title, weight="bold")] + (legend(series) if len(series) > 1 else [])
    return page(head + parts + [words(8, top + 10, footer, colour="#666")], top + FOOT)


def lines(title, marks, series, form, footer):
    """One line a series: a name and a figure for each mark (None: none). Marks stand at equal distances; figures are logarithmic."""
    figures = [figure for _, row in series for figure in row if figure]
    longest, least = log10(max(figures)), log10(min(figures))
    height, left = 320, 70
    step = BAR_WIDTH / max(1, len(marks) - 1)
    level = lambda figure: HEAD + height * (1 - (log10(figure) - least) / ((longest - least) or 1))  # noqa: E731
    parts = [words(8, 20, title + " (logarithmic)", weight="bold")]
    parts += [words(left + number * step, HEAD + height + 18, mark, "middle") for number, mark in enumerate(marks)]
    ends = []
    for number, (name, row) in enumerate(series):
        points = [(left + mark * step, level(figure)) for mark, figure in enumerate(row) if figure]
        if not points:
            continue
        colour = LINE_COLOURS[number % len(LINE_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        last = next(figure for figure in reversed(row) if figure)
        ends.append((points[-1][1], f"{name}: {form.format(last)}", colour))
    below = 0.0
    for top, text, colour in sorted(ends):
        # Names do not stand on each other.
        below = max(top + 4, below + 15)
        parts.append(words(left + BAR_WIDTH + 10, below, text, colour=colour))
    parts += [words(left - 8, level(10**edge) + 4, form.format(10**edge), "end", colour="#666") for edge in (longest, least)]
    bottom = max(HEAD + height + 36, below + 24)
    return page([*parts, words(8, bottom, footer, colour="#666")], bottom + 12)


def legend(series):
    parts, left = [], LABEL_WIDTH
    for colour, name in zip(COLOURS, series):
        parts += [box(left, HEAD - 2, 12, 12, colour), words(left + 17, HEAD + 9, name)]
        left += 40 + 7 * len(name)
    return parts


def words(left, top, text, anchor="start", weight="normal", colour="#222"):
    return f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">{escape(text)}</text>'


def box(left, top, width, height, colour):
    return f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def page(parts, height):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>', *parts, "</svg>"]) + "\n"
