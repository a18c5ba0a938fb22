"""The templates of projects: a folder of files for each, which are copied without change."""
