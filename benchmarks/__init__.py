"""Speed and accuracy beside peers; each module prints one table when run."""
