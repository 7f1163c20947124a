"""Telling people about gates who are at no door of ours: webhooks, commands, and services through Apprise."""
