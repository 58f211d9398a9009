"""Reports for people and pages: statistics, transcripts, use of sources and documents. Values in, values out."""
