"""Pictures of plain numbers, without graphs, releases or weights; matplotlib is imported late."""
