"""Held-out jobs: none of them was seen while the rules were written."""
