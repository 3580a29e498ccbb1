"""Methods of papers, each a plug-in that nothing else rests on."""
