"""A Markdown extension: LaTeX between dollar signs, or in a block marked math, becomes MathML.

MathML is drawn by the browser itself, so that the site needs no script, no fonts and no network for
its mathematics. The notation is the one that GitHub draws too.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

# A dollar with a space inside of it is money or a prompt.
DOLLARS = r"(?<![\\$\w])\$(?=[^\s$])([^$]+?)(?<=\S)\$(?![\w$])"


def fence(source: str, *args: Any, **kwargs: Any) -> str:
    """Return a block of mathematics, for superfences."""
    return f'<div class="equation">{convert(source, display="block")}</div>'


class InlineMathematics(InlineProcessor):
    """Replace $...$ by MathML."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        """Return a placeholder for the MathML, and what it replaces."""
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


class Mathematics(Extension):
    """Register the inline pattern, before backslashes are taken for escapes."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Add the pattern to a Markdown instance."""
        md.inlinePatterns.register(InlineMathematics(DOLLARS, md), "mathematics", 185)


def makeExtension(**settings: Any) -> Mathematics:  # noqa: N802
    """Return the extension; the name is Markdown's."""
    return Mathematics(**settings)
