"""The demonstration: a shipped procedure, a real server, a model that cheats, and a person who decides."""
