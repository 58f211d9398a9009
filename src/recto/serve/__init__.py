"""The endpoint: any client of OpenAI's or Anthropic's API gets Recto's windows. Only this package knows Starlette and
uvicorn.
"""
