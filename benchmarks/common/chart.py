"""A line chart on two logarithmic axes as SVG. Standard library only."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1000, 500
LEFT, RIGHT, TOP, BOTTOM = 70, 390, 50, 60  # margins; the right one holds the legend
COLOURS = ["#0b6e4f", "#c8553d", "#3a6ea5", "#8e5572", "#b8860b", "#4d4d4d", "#7fb069", "#9a8fc0", "#d98880",
           "#17a2b8"]


def text(x, y, content, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(content)}</text>'


def line(x1, y1, x2, y2, colour, width=1.0):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"/>')


class Axis:
    """Map values between two powers of `base` to pixels."""

    def __init__(self, values, base, first, last):
        self.base = base
        self.low = math.floor(math.log(min(values), base) + 1e-9)
        self.high = max(math.ceil(math.log(max(values), base) - 1e-9), self.low + 1)
        self.first, self.last = first, last

    def at(self, value):
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def ticks(self):
        return [self.base ** i for i in range(self.low, self.high + 1)]


def draw(title, x_title, y_title, curves):
    """Draw curves ({name: {x: y}}, positive values) in their order."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(LEFT, 28, title, extra=' font-size="15"')]
    points = [(x, y) for curve in curves.values() for x, y in curve.items() if x > 0 and y > 0]
    if points:
        xs = Axis([x for x, _ in points], 2, LEFT, WIDTH - RIGHT)
        ys = Axis([y for _, y in points], 10, HEIGHT - BOTTOM, TOP)
        for tick in xs.ticks():
            out.append(line(xs.at(tick), TOP, xs.at(tick), HEIGHT - BOTTOM, "#e5e5e5"))
            out.append(text(xs.at(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", "middle"))
        for tick in ys.ticks():
            out.append(line(LEFT, ys.at(tick), WIDTH - RIGHT, ys.at(tick), "#e5e5e5"))
            out.append(text(LEFT - 8, ys.at(tick) + 4, f"{tick:g}", "end"))
        for i, (name, curve) in enumerate(curves.items()):
            colour = COLOURS[i % len(COLOURS)]
            places = [(xs.at(x), ys.at(y)) for x, y in sorted(curve.items()) if x > 0 and y > 0]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
            y = TOP + 12 + 20 * i
            out.append(line(WIDTH - RIGHT + 16, y - 4, WIDTH - RIGHT + 40, y - 4, colour, 2))
            out.append(text(WIDTH - RIGHT + 46, y, name))
        out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, x_title, "middle"))
        out.append(text(16, TOP - 12, y_title))
    else:
        out.append(text(LEFT, HEIGHT / 2, "no measurements"))
    return "\n".join(out) + "\n</svg>\n"
