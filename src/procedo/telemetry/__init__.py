"""What an operator sees from outside: spans, metrics and log lines, made from what was committed.

Nothing in here changes a run. It watches the store's commits and the calls that leave the server; a fault
in here is told to the log and ends there.
"""
