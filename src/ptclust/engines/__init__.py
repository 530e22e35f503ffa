"""Where one machine ends: the same work on a cluster that runs Spark."""
