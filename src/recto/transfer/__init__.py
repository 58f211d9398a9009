"""Conversations out of the store and into it: the complete JSON form, forms to read, exports of other programs."""
