"""Who may come in and what they may do there: tokens, roles, and runs that belong to their starter."""
