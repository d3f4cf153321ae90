"""Sphinx renders formulas ($…$ and ```{math}) as MathML, which browsers draw themselves, so that the manual needs no script
from the network.

docutils translates LaTeX to MathML; a formula that it does not understand is an error of the build.
"""

from docutils import nodes
from docutils.utils.math import latex2mathml


def render(translator, node, is_block):
    text = latex2mathml.tex2mathml(node.astext(), as_block=is_block)
    translator.body.append(f'<div class="math">{text}</div>' if is_block else text)
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (lambda t, n: render(t, n, False), None), (lambda t, n: render(t, n, True), None))
    return {"parallel_read_safe": True}
