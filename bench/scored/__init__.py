"""A candidate for the room of summaries: sentences chosen by a scorer fitted on many hands, held beside today's."""
