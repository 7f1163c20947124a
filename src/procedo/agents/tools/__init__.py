"""The tools that procedo brings for agents, each under the security policy of a contract."""
