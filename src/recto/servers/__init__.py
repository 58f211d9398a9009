"""MCP servers: started, watched, asked for their tools, ended. Knows values of `sources`; neither store nor walk."""
