"""Sentences: splits text into sentences, counts their features, and rates how much each matters.

Knows texts and messages, but no summaries, notes or stores. `segments` splits; `features` counts; `scorer` weighs, with
weights fitted on conversations written and labelled by others; `priority` rates whole messages; `words` holds the
closed classes of words of all languages, for the whole project.
"""
