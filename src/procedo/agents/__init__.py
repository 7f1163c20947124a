"""Agents of the registry: their contracts, what they may do, and what carries a contract out."""
