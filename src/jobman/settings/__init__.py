"""Settings: a packaged template, the user's own over it, or one file instead of both; and their site.

Reads files of settings and nothing else; knows nothing of engines.
"""

from jobman.settings.load import Settings, home_file, load_settings, settings_from_text

__all__ = ["Settings", "home_file", "load_settings", "settings_from_text"]
