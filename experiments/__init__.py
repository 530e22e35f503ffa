"""Experiments, the benchmark and the stress test of the ledger; run by make, not installed."""
