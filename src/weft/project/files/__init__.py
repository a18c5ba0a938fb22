"""Files of a project, which are copied without change."""
