"""The reference pages, each made from the tables and parsers that the program itself reads."""
