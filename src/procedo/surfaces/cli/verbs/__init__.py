"""The verbs of the command line. Each module has `arguments(parser)`, `run(call)` and `EXAMPLES`."""
