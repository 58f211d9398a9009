"""Work toward a goal over many steps: the plan, the tool that changes it, repeated calls, the report. Pure."""
