"""The Python door. `recto.open_async()` gives an AsyncDesk (`desk`), which gives AsyncTalks (`talk`; `talk_reader` has
what only looks). `blocking` is the same for blocking code. Doors that need no desk: `store_reader`, `store_files`,
`vault_reader`, and `fitting` for a client's own messages. Command line and page make their commands from `actions`.
"""
