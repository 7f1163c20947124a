"""procedo runs Standard Operating Procedures for AI agents."""
