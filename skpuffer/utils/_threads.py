"""Threads of linear algebra.

Products of blocks are so small that each would wait for threads, and a sum over many
rows would be another one, in its last digits, by another number of threads.
"""

import functools

from threadpoolctl import ThreadpoolController

#: Control over the libraries that are loaded when it is first asked for, as it takes
#: long to look through them.
threadpool = functools.cache(ThreadpoolController)
