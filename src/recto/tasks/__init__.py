"""Work toward a goal over many steps: the plan, the tool that changes it, what repeats, the report. Pure."""
