"""`procedo.toml`: found, read once, checked as a whole, frozen."""

from procedo.config.capability_settings import CapabilitySettings, HttpSettings, ShellSettings
from procedo.config.keys import KEYS, Key, reference
from procedo.config.loading import load
from procedo.config.serving import OAuthSettings, ServingSettings
from procedo.config.settings import Settings
from procedo.config.workspace import find_workspace

__all__ = [
    "KEYS",
    "CapabilitySettings",
    "HttpSettings",
    "Key",
    "OAuthSettings",
    "ServingSettings",
    "Settings",
    "ShellSettings",
    "find_workspace",
    "load",
    "reference",
]
