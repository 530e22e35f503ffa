"""Pictures of plain numbers: knows no graph, no release and no weight; matplotlib comes late."""
