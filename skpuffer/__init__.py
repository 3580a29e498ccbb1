"""skpuffer: scikit-learn estimators whose noise is set by what is secret."""

__version__ = "0.1.0"
