"""Settings: a packaged template, the user's own over it, or one file instead of both; and their site.

Reads files of settings and nothing else; knows nothing of engines.
"""

from jobman.settings.load import Settings, load_settings

__all__ = ["Settings", "load_settings"]
