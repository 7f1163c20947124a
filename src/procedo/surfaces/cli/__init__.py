"""The command line: one module per verb under `verbs`, imported only when that verb is called."""
