"""Room of the paper's theory: its definitions, conditions, theorems and bounds as functions.

Everything here reads private weights and returns numbers about them: it is for the curator's eyes, and nothing of it
may be published.
"""
