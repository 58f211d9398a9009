"""Who answers: models as data, providers as behaviour, one file per wire format. Knows the window, not the store."""
