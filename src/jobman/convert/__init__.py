"""Scripts and job specifications of others, read into a JobSpec; text in, a document and remarks out.

Knows no engine, no clock and no file but the text it is given. What cannot be carried over is told, with its
place and what to do about it; nothing is dropped in silence.
"""

from jobman.convert.kinds import convert
from jobman.convert.outcome import Converted
from jobman.convert.sbatch import convert_sbatch

__all__ = ["Converted", "convert", "convert_sbatch"]
