"""Exact and statistical tests of every privacy claim, on synthetic graphs only."""

from ptclust.audit.report import AuditReport, Finding
from ptclust.audit.suite import Effort, run_audit

__all__ = ["AuditReport", "Effort", "Finding", "run_audit"]
