"""The Python door. `recto.open_async()` gives an AsyncDesk (`desk`), which gives AsyncTalks (`talk`; `talk_queries` has
what only looks). `blocking` is the same for blocking code. Doors that need no desk: `store_queries`, `store_files`,
`vault_queries`, and `fitting` for a client's own messages. Command line and page make their commands from `actions`.
"""
