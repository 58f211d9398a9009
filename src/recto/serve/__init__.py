"""The endpoint: any client of OpenAI's or Anthropic's API gets Recto's windows. Starlette and uvicorn are known here
alone."""
