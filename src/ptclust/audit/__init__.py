"""Room of the audits: exact and statistical tests of every privacy claim, on synthetic graphs only."""
