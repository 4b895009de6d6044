"""The drawing of a plan: what stands where, as an SVG picture or a Mermaid flowchart.

Pure geometry and text from a plan; reads and writes no files.
"""

from jobman.plan.drawing.layout import layout
from jobman.plan.drawing.mermaid import mermaid
from jobman.plan.drawing.model import Drawing
from jobman.plan.drawing.svg import svg

__all__ = ["Drawing", "layout", "mermaid", "svg"]
