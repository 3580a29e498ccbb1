"""The kernel: the only code that makes a certificate, and that draws noise."""
