"""Small widgets, each fed by a snapshot."""
