"""The schema's revisions, one file each; files are frozen once released."""
