"""Export and import of conversations: the complete JSON form, readable forms, exports of other programs."""
