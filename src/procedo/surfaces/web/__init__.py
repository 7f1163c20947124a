"""The inbox page: people look at gates and decide them in a browser, with or without scripts."""
