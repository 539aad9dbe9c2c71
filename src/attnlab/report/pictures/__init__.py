"""The report's pictures: SVG made here by vl-convert, so that the page needs no library of its own."""
