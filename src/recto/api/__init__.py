"""The Python API. `recto.open_async()` returns an AsyncDesk (`desk`), which opens AsyncTalks (`talk`; `talk_queries`
has the read-only part). `blocking` is the same for blocking code. These need no desk: `store_queries`, `store_files`,
`vault_queries`, and `fitting` for a client's own messages. Command line and page build their commands from
`actions`."""
