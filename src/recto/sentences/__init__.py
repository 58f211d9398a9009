"""Sentences: how a text is split into them, what can be counted about each, and how much each matters.

Knows texts and messages, no summaries, notes or stores. `segments` splits; `features` counts; `scorer` weighs, with
weights fitted on conversations that others wrote and labelled; `priority` rates whole messages; `words` holds the
closed classes of words of all languages, for the whole project.
"""
