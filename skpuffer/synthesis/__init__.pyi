from ._synthesizer import PrivateTableSynthesizer

__all__ = ["PrivateTableSynthesizer"]
